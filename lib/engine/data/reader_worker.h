// A worker thread of InputPipeline, with the state that it may use even after the pipeline has
// abandoned it. Internal to data.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "base/thread.h"
#include "data/batch_slot.h"
#include "data/sample_maker.h"
#include "data/source.h"

namespace fleet::data {

// Items [from, end) of batch `index`; `at` is the current one.
struct Chunk {
  bool busy = false;  // a thread is working on it
  int64_t index = 0, from = 0, at = 0, end = 0;
};

// Owned by the thread that uses it. Once the thread is abandoned, it may use nothing else.
struct WorkContext : Chunk {
  WorkContext(const BatchMaker& batches, int ordinal)
      : source(batches.source()),
        maker(*source, batches.chain(), batches.cache(), batches.storage(), batches.upright()),
        number(ordinal) {}
  std::shared_ptr<const Source> source;
  SampleMaker maker;
  const int number;  // the worker's, from 0
};

struct ReaderWorker {
  std::shared_ptr<WorkContext> context;
  Thread thread;
};

// Whether it is a ReadCancelled.
bool was_cancelled(const std::exception_ptr& error);

// Keeps a thread that is blocked in the kernel; it is never joined. Thread-safe.
void abandon_thread(Thread thread);

}  // namespace fleet::data
