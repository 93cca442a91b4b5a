// The MPI library of a program.
#pragma once

#include <optional>
#include <string>

namespace fleet {

struct MpiLibrary {
  std::string dialect;  // that its programs read: "openmpi" or "mpich"
  std::string name;     // as the loader looks for it: "libmpi.so.40"
};

// The library that a program links, itself or through other libraries. `program`: a path, or a name
// in PATH. Of a script, its interpreter counts: #!/opt/lammps/lmp. nullopt if it links none, as
// Python, which loads MPI later, or if the program is not on this machine. Runs nothing.
std::optional<MpiLibrary> mpi_library_of(const std::string& program);

// By the name of a library; nullopt if it is none of MPI.
std::optional<MpiLibrary> mpi_library_named(const std::string& name);

}  // namespace fleet
