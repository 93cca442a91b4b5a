// A Store for tests: answers at once, or when a key that is long waited for is set.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace fleet {

class FakeStore final : public AsyncStore {
 public:
  void set(const std::string& key, std::string_view value, Done done) override {
    values[key] = value;
    done({});
    for (auto& waiting : std::exchange(waiting_[key], {})) waiting({std::string(value), {}});
  }
  void get(const std::string& key, std::chrono::milliseconds timeout, Done done) override {
    if (const auto found = values.find(key); found != values.end()) {
      done({found->second, {}});
    } else if (timeout < std::chrono::seconds(10)) {
      done({{}, Error(ErrorCode::kTimeout, "not set")});
    } else {
      waiting_[key].push_back(std::move(done));
    }
  }
  void add(const std::string& key, int64_t amount, Done done) override {
    const int64_t sum = (values.contains(key) ? std::stoll(values[key]) : 0) + amount;
    values[key] = std::to_string(sum);
    done({values[key], {}});
  }

  std::map<std::string, std::string> values;

 private:
  std::map<std::string, std::vector<Done>> waiting_;
};

}  // namespace fleet
