// How the threads of a parallel region wait for each other.
#pragma once

namespace fleet::cpu {

// Lets them spin briefly and then sleep. GCC's OpenMP by default lets them spin for milliseconds if
// they are no more than the cores: where other programs use these cores too, or a CPU quota counts
// the time, the thread they wait for cannot run. OpenMP reads GOMP_SPINCOUNT before
// main(), so this executes the program again, with the same arguments. Returns if the user has
// chosen (GOMP_SPINCOUNT, OMP_WAIT_POLICY), with a single thread, or if execv() fails. Call it
// before the program does anything that must not be done twice.
void limit_spinning(char** argv);

}  // namespace fleet::cpu
