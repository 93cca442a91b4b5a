#include "launch/planning/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace fleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = testing::TempDir() + "/doctor.XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& content) const {
    const std::string file = path + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << content;
    return file;
  }
  std::string path;
};
using FileIdentity = Folder;
using Fingerprint = Folder;
using Libraries = Folder;

TEST_F(FileIdentity, ElfWithBuildId_IsTheBuild) {
  const std::string self = file_identity("/proc/self/exe");
  EXPECT_THAT(self, StartsWith("build "));
  EXPECT_EQ(self.size(), 6u + 12);
}

TEST_F(FileIdentity, Script_IsItsContent) {
  const std::string a = write("a.py", "print(1)\n"), b = write("b.py", "print(1)\n"),
                    c = write("c.py", "print(2)\n");
  EXPECT_THAT(file_identity(a), HasSubstr("(9 bytes)"));
  EXPECT_EQ(file_identity(a), file_identity(b));
  EXPECT_NE(file_identity(a), file_identity(c));
}

TEST_F(FileIdentity, LargeFile_EndsAndSizeCount) {
  std::string content(3 << 20, 'x');
  const std::string a = file_identity(write("a", content));
  content.back() = 'y';
  EXPECT_NE(file_identity(write("a", content)), a);
  content.back() = 'x';
  content += 'x';
  EXPECT_NE(file_identity(write("a", content)), a);
}

TEST_F(FileIdentity, BrokenElf_IsHashed) {
  EXPECT_THAT(file_identity(write("a",
                                  "\x7f"
                                  "ELF\x02\x01\x01 not really")),
              StartsWith("hash "));
}

TEST_F(FileIdentity, NoFile_IsEmpty) {
  EXPECT_EQ(file_identity(path + "/none"), "");
  EXPECT_EQ(file_identity(path), "");
}

TEST_F(Fingerprint, ScriptAndInterpreter_AreInIt) {
  const std::string script = write("train.py", "print(1)\n");
  const auto all = fingerprint({{"/bin/python3", "-u", script, "--x"}, false, false, {}});
  EXPECT_THAT(all, Contains(Pair("train.py", file_identity(script))));
  EXPECT_THAT(all, Contains(Key("fleetrun")));
  EXPECT_THAT(all, Contains(Key("glibc")));
}

TEST_F(Fingerprint, Environment_OnlyWhatMustBeAlike) {
  const auto all =
      fingerprint({{},
                   false,
                   false,
                   {"NCCL_DEBUG=INFO", "HOME=/root", "NCCL_SOCKET_IFNAME=eth0",
                    "FLAGS_x=", "FLAGS_selected_gpus=3", "OMP_NUM_THREADS=4", "broken"}});
  EXPECT_THAT(all, Contains(Pair("NCCL_DEBUG", "INFO")));
  EXPECT_THAT(all, Contains(Pair("FLAGS_x", "")));
  EXPECT_THAT(all, Contains(Pair("OMP_NUM_THREADS", "4")));
  for (const char* name : {"HOME", "NCCL_SOCKET_IFNAME", "FLAGS_selected_gpus", "broken"}) {
    EXPECT_THAT(all, Not(Contains(Key(name))));
  }
}

TEST_F(Fingerprint, LongValue_IsCutAndHashed) {
  const std::string value(10'000, 'v');
  const auto a = fingerprint({{}, false, false, {"FLAGS_long=" + value}});
  const auto b = fingerprint({{}, false, false, {"FLAGS_long=" + value + "w"}});
  EXPECT_LT(a.at("FLAGS_long").size(), 100u);
  EXPECT_NE(a.at("FLAGS_long"), b.at("FLAGS_long"));
}

TEST_F(Fingerprint, ProgramFiles_ByWhatRunsThem) {
  const std::string script = write("run.sh", ":\n");
  EXPECT_THAT(program_files({"/bin/sh", script, "x"}), ElementsAre(script));
  EXPECT_THAT(program_files({"/bin/sh", "-c", "exit 3"}), IsEmpty());
  EXPECT_THAT(program_files({"/opt/a.out", script}), ElementsAre("/opt/a.out"));
  EXPECT_THAT(program_files({"/usr/bin/python3", "-u", script}),
              ElementsAre("/usr/bin/python3", script));
  EXPECT_THAT(program_files({"/usr/bin/python3", "-m", "pack"}), ElementsAre("/usr/bin/python3"));
  EXPECT_THAT(program_files({}), IsEmpty());
}

TEST_F(Libraries, Folders_SearchPathFirstThenConfigured) {
  write("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n/opt/lib\n");
  write("etc/ld.so.conf.d/cuda.conf", "# cuda\n/usr/local/cuda-13.0/lib64\n");
  const auto folders = library_folders("/mine::/yours", path);
  ASSERT_GE(folders.size(), 4u);
  EXPECT_THAT(std::vector<std::string>(folders.begin(), folders.begin() + 4),
              ElementsAre("/mine", "/yours", "/opt/lib", "/usr/local/cuda-13.0/lib64"));
}

TEST_F(Libraries, Version_IsInTheNameBehindTheLink) {
  write("libnccl.so.2.28.9", "");
  std::filesystem::create_symlink("libnccl.so.2.28.9", path + "/libnccl.so.2");
  const std::string found = find_library("libnccl.so.2", {"/nowhere", path});
  EXPECT_THAT(found, HasSubstr("libnccl.so.2.28.9"));
  EXPECT_EQ(version_in_name(found), "2.28.9");
  EXPECT_EQ(version_in_name("/lib/libnccl.so.2"), "");
  EXPECT_EQ(version_in_name("/lib/libnccl.so"), "");
  EXPECT_EQ(find_library("libnccl.so.2", {"/nowhere"}), "");
}

}  // namespace
}  // namespace fleet
