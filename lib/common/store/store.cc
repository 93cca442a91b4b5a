#include "store/store.h"

#include <map>
#include <utility>

#include "base/clock.h"
#include "base/env.h"
#include "base/mutex.h"
#include "store/env.h"

namespace fleet {
namespace {

class MemoryStore : public Store {
 public:
  void set(const std::string& key, std::string_view value) override {
    {
      const MutexLock lock(mutex_);
      values_[key] = value;
    }
    changed_.notify_all();
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const MutexLock lock(mutex_);
    const auto is_set = [&]() FLEET_REQUIRES(mutex_) { return values_.contains(key); };
    if (!changed_.wait_for(mutex_, timeout, is_set)) {
      throw Error(ErrorCode::kTimeout, "no rank set the key within " + seconds_text(timeout), key);
    }
    return values_[key];
  }
  int64_t add(const std::string& key, int64_t amount) override {
    int64_t sum = 0;
    {
      const MutexLock lock(mutex_);
      std::string& value = values_[key];
      sum = (value.empty() ? 0 : std::stoll(value)) + amount;
      value = std::to_string(sum);
    }
    changed_.notify_all();
    return sum;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> values_ FLEET_GUARDED_BY(mutex_);
};

class PrefixStore : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}
  void set(const std::string& key, std::string_view value) override {
    store_->set(prefix_ + key, value);
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    return store_->get(prefix_ + key, timeout);
  }
  int64_t add(const std::string& key, int64_t amount) override {
    return store_->add(prefix_ + key, amount);
  }

 private:
  std::shared_ptr<Store> store_;
  std::string prefix_;
};

StoreConnector& installed_connector() {
  static StoreConnector connector;
  return connector;
}

}  // namespace

std::shared_ptr<Store> make_memory_store() { return std::make_shared<MemoryStore>(); }

std::shared_ptr<Store> with_prefix(std::shared_ptr<Store> store, std::string prefix) {
  return std::make_shared<PrefixStore>(std::move(store), std::move(prefix));
}

void store_barrier(Store& store, const std::string& key, int size,
                   std::chrono::milliseconds timeout) {
  if (store.add(key + "/count", 1) == size) store.set(key + "/open", "1");
  try {
    store.get(key + "/open", timeout);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    const int64_t came = store.add(key + "/count", 0);
    throw Error(ErrorCode::kTimeout,
                std::to_string(came) + " of " + std::to_string(size) + " ranks arrived", key,
                "look at the logs of the other ranks");
  }
}

void set_store_connector(StoreConnector connector) { installed_connector() = std::move(connector); }

std::shared_ptr<Store> job_store() {
  if (!get_env(kEnvStoreAddress)) return nullptr;
  const StoreConnector& connector = installed_connector();
  if (connector) return connector();
  throw Error(ErrorCode::kUnsupported, "this program has no client for the job's store",
              std::string("environment ") + kEnvStoreAddress,
              "link libfleetrun, or call set_store_connector()");
}

}  // namespace fleet
