// The functions of libnvidia-ml.so.1 that GpuMonitor calls, of a machine with two GPUs. GPU 7
// hangs.
#include <unistd.h>

extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;  // NOLINT(runtime/int)
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  static int gpus[2];
  if (index == 7) {
    for (;;) ::pause();
  }
  if (index > 1) return 6;
  *gpu = &gpus[index];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, Utilization* rates) {
  *rates = {97, 40};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {80ull << 30, 70ull << 30, 10ull << 30};
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1410 : 1;  // of the multiprocessors
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 399'700;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned*) { return 3; }  // not supported
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {  // NOLINT
  *reasons = 0x1 | 0x4 | 0x20;  // idle, power cap, heat
  return 0;
}

}  // extern "C"
