// For coverage builds: _exit(), which ends fleetrun and its guardians, writes gcov's counters
// first. The linker replaces _exit() by this (--wrap).
extern "C" {
void __gcov_dump();
[[noreturn]] void __real__exit(int code);
[[noreturn]] void __wrap__exit(int code) {
  __gcov_dump();
  __real__exit(code);
}
}
