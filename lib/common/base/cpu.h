// The places where processors differ: instruction sets, and the pause of a loop that spins.
#pragma once

// A function compiled for several instruction sets, one of which is selected at program start: for
// functions that loop over a range. Functions they call must be FLEET_INLINE. Sanitizers do not
// support it, nor clang for templates; there, and on other processors than x86-64, the function is
// compiled once.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define FLEET_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FLEET_SIMD
#endif
// A backend whose kernels share them with the CPU's may say where they run (FLEET_DEVICE).
#ifndef FLEET_DEVICE
#define FLEET_DEVICE
#endif
#define FLEET_INLINE FLEET_DEVICE inline __attribute__((always_inline))

// Whether this machine is an x86-64 with the feature, a literal such as "avx2".
#if defined(__x86_64__)
#define FLEET_X86_HAS(feature) (__builtin_cpu_supports(feature) != 0)
#else
#define FLEET_X86_HAS(feature) false
#endif

namespace fleet {

// For the body of a loop that waits for another thread or process: leaves the core's resources to
// its other thread for some tens of cycles. Orders nothing; the loop loads an atomic.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // Most cores execute `yield` as nothing; `isb` takes about as long as x86's `pause`.
  asm volatile("isb" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace fleet
