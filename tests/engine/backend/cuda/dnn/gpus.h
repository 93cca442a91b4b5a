// Properties of GPUs as cuDNN writes them, from which plans are made without the GPU.
#pragma once

#include <string>

namespace fleet::cuda {

inline std::string h200_properties() {
  return R"({"deviceName":"NVIDIA H200","deviceVer":900,"driverVer":13000,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,
"multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,
"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,
"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,
"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":150754820096,
"smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,"cudaDeviceId":0})";
}

}  // namespace fleet::cuda
