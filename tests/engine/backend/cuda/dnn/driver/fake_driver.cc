// In place of the GPU's driver, libcuda.so.1, so that cuDNN plans graphs whose kernels it compiles
// itself: the calls that load a compiled kernel succeed, all others say that there is no driver.
// Only what cuDNN 9 looks up; the arguments that a call ignores are left out.

namespace {

constexpr int kSuccess = 0, kStubLibrary = 34;  // CUDA_SUCCESS, CUDA_ERROR_STUB_LIBRARY

int give(void** result) {
  static int something;
  *result = &something;
  return kSuccess;
}

}  // namespace

extern "C" {

int cuLibraryLoadData(void** library) { return give(library); }
int cuLibraryGetKernel(void** kernel) { return give(kernel); }
int cuLibraryUnload() { return kSuccess; }
int cuKernelSetAttribute() { return kSuccess; }

#define FLEET_NO_DRIVER(name) \
  int name() { return kStubLibrary; }
FLEET_NO_DRIVER(cuCtxGetCurrent)
FLEET_NO_DRIVER(cuCtxGetDevice)
FLEET_NO_DRIVER(cuCtxGetLimit)
FLEET_NO_DRIVER(cuCtxPopCurrent)
FLEET_NO_DRIVER(cuCtxPushCurrent)
FLEET_NO_DRIVER(cuDeviceGet)
FLEET_NO_DRIVER(cuDeviceGetAttribute)
FLEET_NO_DRIVER(cuDeviceGetCount)
FLEET_NO_DRIVER(cuDevicePrimaryCtxRelease)
FLEET_NO_DRIVER(cuDevicePrimaryCtxReset)
FLEET_NO_DRIVER(cuDevicePrimaryCtxRetain)
FLEET_NO_DRIVER(cuDriverGetVersion)
FLEET_NO_DRIVER(cuFuncGetAttribute)
FLEET_NO_DRIVER(cuFuncSetAttribute)
FLEET_NO_DRIVER(cuGetErrorName)
FLEET_NO_DRIVER(cuGetErrorString)
FLEET_NO_DRIVER(cuInit)
FLEET_NO_DRIVER(cuKernelGetAttribute)
FLEET_NO_DRIVER(cuLaunchCooperativeKernel)
FLEET_NO_DRIVER(cuLaunchKernel)
FLEET_NO_DRIVER(cuLaunchKernelEx)
FLEET_NO_DRIVER(cuLibraryLoadFromFile)
FLEET_NO_DRIVER(cuLinkAddData)
FLEET_NO_DRIVER(cuLinkAddData_v2)
FLEET_NO_DRIVER(cuLinkAddFile_v2)
FLEET_NO_DRIVER(cuLinkComplete)
FLEET_NO_DRIVER(cuLinkCreate)
FLEET_NO_DRIVER(cuLinkCreate_v2)
FLEET_NO_DRIVER(cuLinkDestroy)
FLEET_NO_DRIVER(cuMemcpyDtoH_v2)
FLEET_NO_DRIVER(cuModuleGetFunction)
FLEET_NO_DRIVER(cuModuleGetGlobal_v2)
FLEET_NO_DRIVER(cuModuleLoadData)
FLEET_NO_DRIVER(cuModuleLoadDataEx)
FLEET_NO_DRIVER(cuModuleLoadFatBinary)
FLEET_NO_DRIVER(cuModuleUnload)
FLEET_NO_DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)
FLEET_NO_DRIVER(cuOccupancyMaxPotentialClusterSize)
FLEET_NO_DRIVER(cuStreamGetCtx)
FLEET_NO_DRIVER(cuStreamSynchronize)
FLEET_NO_DRIVER(cuTensorMapEncodeTiled)
#undef FLEET_NO_DRIVER

}  // extern "C"
