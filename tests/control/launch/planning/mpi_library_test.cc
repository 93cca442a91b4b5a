#include "launch/planning/mpi_library.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launch/planning/arguments.h"
#include "launch/planning/elf_file.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The parts of an ELF file that the loader reads to find libraries.
std::string elf(const std::vector<std::string>& libraries, const std::string& runpath = {}) {
  constexpr uint64_t kAddress = 0x400000;
  std::string texts(1, '\0'), dynamic;
  const auto add = [&](int64_t tag, uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic += bytes_of(entry);
  };
  const auto add_text = [&](int64_t tag, const std::string& text) {
    add(tag, texts.size());
    texts += text + '\0';
  };
  for (const std::string& library : libraries) add_text(DT_NEEDED, library);
  if (!runpath.empty()) add_text(DT_RUNPATH, runpath);
  const uint64_t start = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  add(DT_STRTAB, kAddress + start + dynamic.size() + 2 * sizeof(Elf64_Dyn));
  add(DT_NULL, 0);
  Elf64_Ehdr head{};
  std::copy_n(ELFMAG, SELFMAG, head.e_ident);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 2;
  Elf64_Phdr load{}, table{};
  load.p_type = PT_LOAD;
  load.p_vaddr = kAddress;
  load.p_filesz = start + dynamic.size() + texts.size();
  table.p_type = PT_DYNAMIC;
  table.p_offset = start;
  table.p_filesz = dynamic.size();
  return bytes_of(head) + bytes_of(load) + bytes_of(table) + dynamic + texts;
}

struct MpiPrograms : ::testing::Test {
  MpiPrograms() {
    std::string name = ::testing::TempDir() + "mpi_programs.XXXXXX";
    folder = ::mkdtemp(name.data());
    ::unsetenv("LD_LIBRARY_PATH");
  }
  ~MpiPrograms() override {
    ::unsetenv("LD_LIBRARY_PATH");
    std::filesystem::remove_all(folder);
  }
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = folder + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // "" if it links no MPI.
  static std::string dialect_of(const std::string& program) {
    const auto library = mpi_library_of(program);
    return library ? library->dialect : "";
  }
  std::string folder;
};

TEST(MpiLibrary, Names_OfEachImplementation) {
  const auto dialect = [](const std::string& name) {
    const auto library = mpi_library_named(name);
    return library ? library->dialect : "";
  };
  for (const char* name : {"libmpi.so.40", "libmpi.so.20", "libmpi_mpifh.so.40", "libmpi_cxx.so.1",
                           "libmpi.so.40.30.4"}) {
    EXPECT_EQ(dialect(name), "openmpi") << name;
  }
  for (const char* name : {"libmpi.so.12", "libmpich.so.12", "libmpifort.so.12", "libmpich.so.10",
                           "libmpicxx.so.12", "libmpi_gnu_91.so.12", "libmpi.so.4"}) {
    EXPECT_EQ(dialect(name), "mpich") << name;
  }
  for (const char* name : {"libc.so.6", "libmpi", "libmpi.a", "libmpiuni.so.1", "libmpir.so.3"}) {
    EXPECT_EQ(dialect(name), "") << name;
  }
}

TEST_F(MpiPrograms, Program_LinksItsLibrary) {
  EXPECT_EQ(dialect_of(write("a", elf({"libm.so.6", "libmpi.so.40"}))), "openmpi");
  EXPECT_EQ(dialect_of(write("b", elf({"libmpich.so.12", "libc.so.6"}))), "mpich");
  EXPECT_EQ(dialect_of(write("c", elf({"libc.so.6"}))), "");
  EXPECT_EQ(dialect_of(write("d", "not ELF")), "");
  EXPECT_EQ(dialect_of(folder + "/gone"), "");
  EXPECT_EQ(dialect_of(folder), "");
}

TEST_F(MpiPrograms, LibraryOfALibrary_Counts) {
  write("lib/libsolver.so.1", elf({"libmpi.so.12"}));
  EXPECT_EQ(dialect_of(write("bin/a", elf({"libsolver.so.1"}))), "")
      << "the loader does not find it";
  EXPECT_EQ(dialect_of(write("bin/a", elf({"libsolver.so.1"}, "$ORIGIN/../lib"))), "mpich");
  EXPECT_EQ(dialect_of(write("bin/a", elf({"libsolver.so.1"}, "/gone:" + folder + "/lib"))),
            "mpich");
  ::setenv("LD_LIBRARY_PATH", (folder + "/lib").c_str(), 1);
  EXPECT_EQ(dialect_of(write("bin/a", elf({"libsolver.so.1"}))), "mpich");
}

TEST_F(MpiPrograms, Script_HasTheLibraryOfItsInterpreter) {
  const std::string interpreter = write("lmp", elf({"libmpi.so.40"}));
  EXPECT_EQ(dialect_of(write("in.melt", "#!" + interpreter + " -in\nunits lj\n")), "openmpi");
  EXPECT_EQ(dialect_of(write("outer", "#! " + folder + "/in.melt\n")), "openmpi");
  EXPECT_EQ(dialect_of(write("loop", "#!" + folder + "/loop\n")), "");
  EXPECT_EQ(dialect_of(write("run.sh", "#!/bin/sh\n./a.out\n")), "");
  const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  ::setenv("PATH", folder.c_str(), 1);
  EXPECT_EQ(dialect_of("lmp"), "openmpi");
  EXPECT_EQ(dialect_of(write("by_env", "#!/usr/bin/env lmp\n")), "openmpi");
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(MpiPrograms, DamagedFiles_LinkNothing) {
  const std::string whole = elf({"libmpi.so.40"}, "/opt/lib");
  for (size_t size = 0; size < whole.size(); ++size) {
    dialect_of(write("cut", whole.substr(0, size)));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = '\xFF';
    dialect_of(write("damaged", damaged));
  }
  EXPECT_EQ(dialect_of(write("cut", whole.substr(0, sizeof(Elf64_Ehdr)))), "");
}

TEST_F(MpiPrograms, ThisProgram_IsReadAsTheLoaderDoes) {
  const auto self = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(self);
  EXPECT_FALSE(self->build_id().empty());
  EXPECT_FALSE(ElfFile::open("/etc/passwd"));
}

struct MpiDialect : MpiPrograms {
  static LaunchRequest request(std::vector<std::string> words, const std::string& program) {
    words.push_back(program);
    return parse_arguments(words);
  }
};

TEST_F(MpiDialect, WithAnOptionThatOnlyMpirunHas_IsThatOfTheLibrary) {
  const std::string open_mpi = write("a.out", elf({"libmpi.so.40"}));
  const std::string mpich = write("b.out", elf({"libmpi.so.12"}));
  const LaunchRequest of_open_mpi = request({"-np", "4", "--bind-to", "core"}, open_mpi);
  EXPECT_THAT(of_open_mpi.config.dialects, ElementsAre("paddle", "torch", "openmpi"));
  EXPECT_THAT(of_open_mpi.notes, ElementsAre(HasSubstr("libmpi.so.40")));
  const LaunchRequest of_mpich = request({"-ppn", "2"}, mpich);
  EXPECT_THAT(of_mpich.config.dialects, ElementsAre("paddle", "torch", "mpich"));
  EXPECT_THAT(of_mpich.notes, ElementsAre(HasSubstr("libmpi.so.12")));
}

TEST_F(MpiDialect, WithoutSuchAnOptionOrALibrary_IsNotChosen) {
  const std::string mpi = write("a.out", elf({"libmpi.so.40"}));
  const std::string other = write("b.out", elf({"libc.so.6"}));
  for (const LaunchRequest& none :
       {request({"-np", "4"}, mpi), request({"-n4"}, mpi), request({"-H", "localhost:4"}, mpi),
        request({"--nproc_per_node=4"}, mpi), request({"-np", "4", "--bind-to", "core"}, other),
        request({"-np", "4", "--bind-to", "core"}, "python3")}) {
    EXPECT_THAT(none.config.dialects, ElementsAre("paddle", "torch"));
    EXPECT_THAT(none.notes, IsEmpty());
  }
  const LaunchRequest given = request({"--bind-to", "core", "--dialect=jax"}, mpi);
  EXPECT_THAT(given.config.dialects, ElementsAre("jax"));
  EXPECT_THAT(given.notes, IsEmpty());
}

// The fleetruns of the nodes get no option of mpirun.
TEST_F(MpiDialect, OtherNodes_GetItAsAnOption) {
  const std::string mpi = write("a.out", elf({"libmpi.so.12"}));
  const LaunchRequest remote = request({"-hosts", "n1,n2", "-ppn", "2"}, mpi);
  EXPECT_EQ(remote.config.via.name, "ssh");
  EXPECT_THAT(given_flags(remote, {}), ::testing::Contains("--dialect=paddle,torch,mpich"));
}

}  // namespace
}  // namespace fleet
