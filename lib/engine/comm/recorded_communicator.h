// Records every call of a communicator in the process's collective log
// (observe/collective_log.h), whatever its transport. make_communicator() returns one of these.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "observe/collective_log.h"

namespace fleet {

// The purpose of the calls that this thread issues within the scope.
class CollectivePurposeScope {
 public:
  explicit CollectivePurposeScope(const CollectivePurpose& purpose);
  ~CollectivePurposeScope();
  CollectivePurposeScope(const CollectivePurposeScope&) = delete;

 private:
  const CollectivePurpose* const before_;
};

// The calls inside a Recording of the device (a CUDA graph). They get their numbers when the
// recording is launched, not when it is made. The log then shows them as issued; it cannot show how
// far within the recording the GPU is.
class RecordedCalls {
 public:
  // Calls that this thread issues within the scope belong to the recording that it makes.
  class Scope {
   public:
    explicit Scope(RecordedCalls* calls);
    ~Scope();
    Scope(const Scope&) = delete;
  };
  // Call at each launch.
  void launched();

 private:
  friend class RecordedCommunicator;
  struct Sequence;
  struct Call {
    std::shared_ptr<Sequence> sequence;
    CollectiveRecord call;
    int peer;  // rank of the group
  };
  std::vector<Call> calls_;
};

class RecordedCommunicator : public Communicator {
 public:
  // ranks: those of the job, by rank of the group. device: its calls run on a GPU's streams.
  RecordedCommunicator(std::unique_ptr<Communicator> inner, const std::string& group,
                       std::vector<int> ranks, bool device);
  ~RecordedCommunicator() override;

  const Communicator& inner() const { return *inner_; }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string name() const override { return inner_->name(); }
  Buffer allocate(size_t bytes) override { return inner_->allocate(bytes); }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;

  void issue(const CollectiveCall& call, Stream& stream) override;
  void set_group_name(const std::string& name) override;
  void abort(const Error& why) override { inner_->abort(why); }
  void throw_if_failed() const override { inner_->throw_if_failed(); }
  void launched(Stream& stream) override { inner_->launched(stream); }
  std::optional<Traffic> traffic() const override { return inner_->traffic(); }

 private:
  const std::unique_ptr<Communicator> inner_;
  const std::vector<int> ranks_;
  const bool device_;
  std::string name_;
  // Outlives the communicator in a recording that was made with it.
  const std::shared_ptr<RecordedCalls::Sequence> sequence_;
};

}  // namespace fleet
