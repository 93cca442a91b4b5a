// The photographs that benchmarks of input read.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/test_paths.h"

namespace fleet::data {

// The folder with them, unpacked beside the programs once; "" if there is no archive.
inline std::string unpacked_photographs() {
  const std::string beside = source_folder() + "/../shared/data";
  const std::filesystem::path tar =
      std::filesystem::path(env_or("FLEET_SHARED_DATA", beside)) / "imagenet_200.tar";
  const std::filesystem::path folder = std::filesystem::path(program_folder()) / "../imagenet_200";
  if (!std::filesystem::exists(tar)) return {};
  if (!std::filesystem::exists(folder)) {
    make_directories(folder);
    const std::string command = "tar -xf '" + tar.string() + "' -C '" + folder.string() + "'";
    if (std::system(command.c_str()) != 0) {
      throw Error(ErrorCode::kIo, "could not unpack", tar.string());
    }
  }
  return folder;
}

}  // namespace fleet::data
