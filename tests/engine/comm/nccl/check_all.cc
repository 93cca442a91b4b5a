#include "tests/engine/comm/nccl/check_all.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/two_level.h"
#include "tests/engine/comm/values.h"

namespace fleet {
namespace {

constexpr size_t kCounts[] = {1, 777, 300001};

class Check {
 public:
  Check(Communicator& comm, Device& device)
      : comm_(comm), device_(device), stream_(device.make_stream("check")) {}

  void reductions() {
    for (DType dtype : kTypes) {
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax}) {
        for (size_t count : kCounts) sums_in_and_out_of_place(dtype, op, count);
      }
    }
  }

  void to_and_from_one() {
    for (int root = 0; root < size(); ++root) {
      for (size_t count : kCounts) {
        const View in = make(false, count, DType::kFloat32), out = make(true, count, in.dtype);
        fill(in, [&](size_t i) { return contribution(rank(), i); });
        fill(out, [](size_t) { return 99; });
        comm_.reduce(in, out, ReduceOp::kSum, root, *stream_);
        const auto sum = [&](size_t i) { return expected_of(ReduceOp::kSum, size(), i); };
        if (rank() == root) expect(out, sum, "reduce");
        fill(in, [&](size_t i) { return contribution(rank(), i); });
        comm_.broadcast(in, root, *stream_);
        expect(
            in, [&](size_t i) { return contribution(root, i); }, "broadcast");
      }
    }
  }

  void parts() {
    for (size_t count : kCounts) {
      const View whole = make(true, count * size(), DType::kFloat32);
      const View part = make(false, count, whole.dtype);
      const auto gathered = [&](size_t i) {
        return contribution(static_cast<int>(i / count), i % count);
      };
      fill(part, [&](size_t i) { return contribution(rank(), i); });
      comm_.all_gather(part, whole, *stream_);
      expect(whole, gathered, "all_gather");
      // From the beginning of the whole, which is another rank's place.
      const View first = {whole.data, count, whole.dtype};
      fill(first, [&](size_t i) { return contribution(rank(), i); });
      comm_.all_gather(first, whole, *stream_);
      expect(whole, gathered, "all_gather in place");
      for (const View& to : {part, first}) {
        fill(whole, [&](size_t i) { return contribution(rank(), i); });
        comm_.reduce_scatter(whole, to, ReduceOp::kSum, *stream_);
        expect(
            to, [&](size_t i) { return expected_of(ReduceOp::kSum, size(), rank() * count + i); },
            "reduce_scatter");
      }
    }
  }

  void messages() {
    if (size() == 1) return;
    const int next = (rank() + 1) % size(), last = (rank() + size() - 1) % size();
    for (size_t count : kCounts) {
      const View out = make(false, count, DType::kInt32), in = make(false, count, DType::kInt32);
      fill(out, [&](size_t i) { return contribution(rank(), i); });
      if (rank() == 0) comm_.send(out, next, *stream_);
      comm_.recv(in, last, *stream_);
      if (rank() != 0) comm_.send(out, next, *stream_);
      expect(
          in, [&](size_t i) { return contribution(last, i); }, "recv");
    }
  }

  // Two communicators on a stream each, recorded and launched again and again.
  void graph() {
    std::vector<int> all(size());
    std::iota(all.begin(), all.end(), 0);
    const std::unique_ptr<Communicator> other = comm_.split(all);
    const View a = make(true, 5000, DType::kFloat32), b = make(true, 5000, DType::kFloat32);
    fill(a, [](size_t) { return 1; });
    fill(b, [](size_t) { return 1; });
    const auto side = device_.make_stream("side");
    const auto begin = device_.make_event(), end = device_.make_event();
    const auto step = [&] {
      stream_->record(*begin);
      side->wait(*begin);
      comm_.all_reduce(a, a, ReduceOp::kSum, *stream_);
      other->all_reduce(b, b, ReduceOp::kSum, *side);
      side->record(*end);
      stream_->wait(*end);
    };
    step();
    const std::unique_ptr<Recording> recording = device_.record(*stream_, step);
    if (!recording) throw std::runtime_error("the device records nothing");
    for (int launch = 0; launch < 2; ++launch) {
      recording->launch(*stream_);
      comm_.launched(*stream_);
      other->launched(*stream_);
    }
    other->throw_if_failed();
    const int cube = size() * size() * size();
    expect(
        a, [&](size_t) { return cube; }, "recorded all_reduce");
    expect(
        b, [&](size_t) { return cube; }, "recorded all_reduce of the second communicator");
  }

  void groups() {
    if (size() != 4) return;
    const auto grouped = TwoLevelCommunicator::make(comm_, 2);
    const View data = make(true, 10000, DType::kFloat32);
    fill(data, [&](size_t i) { return contribution(rank(), i); });
    grouped->all_reduce(data, data, ReduceOp::kSum, *stream_);
    expect(
        data, [&](size_t i) { return expected_of(ReduceOp::kSum, size(), i); }, "groups");
  }

 private:
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }

  View make(bool own, size_t count, DType dtype) {
    const size_t bytes = count * size_of(dtype);
    kept_.push_back(own ? comm_.allocate(bytes) : device_.allocate(bytes));
    return {kept_.back().data(), count, dtype};
  }
  template <typename Value>
  void fill(const View& view, const Value& value) {
    std::vector<char> host(view.bytes());
    for (size_t i = 0; i < view.count; ++i) put(view.dtype, host.data(), i, value(i));
    device_.copy(view.data, host.data(), host.size(), *stream_);
    stream_->synchronize();
  }
  template <typename Value>
  void expect(const View& view, const Value& value, const std::string& what) {
    std::vector<char> wanted(view.bytes()), found(view.bytes());
    for (size_t i = 0; i < view.count; ++i) put(view.dtype, wanted.data(), i, value(i));
    device_.copy(found.data(), view.data, found.size(), *stream_);
    stream_->synchronize();
    comm_.throw_if_failed();
    if (std::memcmp(wanted.data(), found.data(), found.size()) == 0) return;
    throw std::runtime_error(what + " of " + std::to_string(view.count) + " " +
                             name_of(view.dtype) + " is wrong on rank " + std::to_string(rank()));
  }

  void sums_in_and_out_of_place(DType dtype, ReduceOp op, size_t count) {
    const View in = make(false, count, dtype), out = make(true, count, dtype);
    const auto mine = [&](size_t i) { return contribution(rank(), i); };
    const auto all = [&](size_t i) { return expected_of(op, size(), i); };
    fill(in, mine);
    comm_.all_reduce(in, out, op, *stream_);
    expect(out, all, "all_reduce");
    expect(in, mine, "the input of all_reduce");
    comm_.all_reduce(in, in, op, *stream_);
    expect(in, all, "all_reduce in place");
    kept_.clear();
  }

  Communicator& comm_;
  Device& device_;
  const std::unique_ptr<Stream> stream_;
  std::vector<Buffer> kept_;
};

}  // namespace

void check_all(Communicator& comm, Device& device) {
  Check check(comm, device);
  check.reductions();
  check.to_and_from_one();
  check.parts();
  check.messages();
  check.graph();
  check.groups();
}

}  // namespace fleet
