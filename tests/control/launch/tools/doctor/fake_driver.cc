// The functions of libnvidia-ml.so.1 and libnccl.so.2 that the doctor calls, of a machine that is
// well, hangs or crashes: FAKE_KIND.
#include <signal.h>
#include <unistd.h>

#include <cstring>

#define WELL 0
#define HANGS 1
#define CRASHES 2

extern "C" {

struct Memory {
  unsigned long long total, free, used;  // NOLINT(runtime/int)
};

int nvmlInit_v2() {
#if FAKE_KIND == HANGS
  for (;;) ::pause();
#elif FAKE_KIND == CRASHES
  ::raise(SIGKILL);
#endif
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.65.06", size);
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  static int gpus[2];
  *gpu = &gpus[index];
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::strncpy(text, "NVIDIA Fake 200", size);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {140ULL << 30, 0, 5 << 20};
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long* count) {  // NOLINT
  *count = 7;
  return 0;
}
int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}

}  // extern "C"
