// The functions of libnvidia-ml.so.1 that the backend calls: one GPU, at 0000:0A:00.0.
#include <cstring>

namespace {

int started = 0;  // nvmlInit_v2 less nvmlShutdown
int gpu = 0;

}  // namespace

extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;  // NOLINT(runtime/int)
};

int nvmlInit_v2() {
  ++started;
  return 0;
}
int nvmlShutdown() {
  --started;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (started < 1) return 1;  // uninitialized
  if (std::strcmp(id, "0000:0A:00.0") != 0) return 6;
  *device = &gpu;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  if (device != &gpu) return 2;
  *rates = {97, 40};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (device != &gpu) return 2;
  *memory = {80ull << 30, 70ull << 30, 10ull << 30};
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 1;  // of the multiprocessors
  return 0;
}
int fake_nvml_started() { return started; }

}  // extern "C"
