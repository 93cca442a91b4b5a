#include "base/bounded_call.h"

#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/thread.h"

namespace fleet {

bool ends_within(std::chrono::milliseconds limit, std::function<void()> call) {
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(call));
  std::future<void> result = task->get_future();
  std::thread thread;
  const HandlesRefusedThreads handled;
  try {
    thread = std::thread([task] { (*task)(); });
  } catch (const std::system_error&) {  // no thread is left
    (*task)();
  }
  if (result.wait_for(limit) != std::future_status::ready) {
    thread.detach();
    return false;
  }
  if (thread.joinable()) thread.join();
  result.get();
  return true;
}

}  // namespace fleet
