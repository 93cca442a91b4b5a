#include "data/reader_worker.h"

#include <utility>
#include <vector>

#include "base/mutex.h"
#include "data/storage.h"

namespace fleet::data {

bool was_cancelled(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const ReadCancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

void abandon_thread(Thread thread) {
  static Mutex mutex;
  static auto* const threads FLEET_PT_GUARDED_BY(mutex) = new std::vector<Thread>;
  const MutexLock lock(mutex);
  threads->push_back(std::move(thread));
}

}  // namespace fleet::data
