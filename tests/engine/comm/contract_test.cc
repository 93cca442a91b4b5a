// The contract of every backend, checked on ranks that are threads of this process. The backends
// are listed in files of their own: host_backends_test.cc, nccl/.
#include "tests/engine/comm/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <random>

#include "tests/engine/comm/values.h"

namespace fleet {
namespace {

using testing::HasSubstr;

// Memory from the communicator, or from elsewhere.
struct Memory {
  Memory(Rank& rank, bool own, size_t count, DType dtype)
      : rank(rank),
        buffer(own ? rank.comm.allocate(count * size_of(dtype))
                   : rank.device.allocate(count * size_of(dtype))),
        view{buffer.data(), count, dtype} {}
  template <typename Value>
  void fill(const Value& value) {
    for (size_t i = 0; i < view.count; ++i) put(view.dtype, view.data, i, value(i));
  }
  template <typename Value>
  void expect(const Value& value, const std::string& what) {
    rank.finish();
    Buffer wanted = HostDevice().allocate(view.bytes());
    for (size_t i = 0; i < view.count; ++i) put(view.dtype, wanted.data(), i, value(i));
    if (view.bytes() == 0) return;
    EXPECT_EQ(std::memcmp(wanted.data(), view.data, view.bytes()), 0) << what;
  }
  template <typename T>
  T* as() {
    return static_cast<T*>(view.data);
  }
  Rank& rank;
  Buffer buffer;
  View view;
};

TEST_P(Contract, RankAndSize_AreAsGiven) {
  std::atomic<int> sum{0};
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    EXPECT_EQ(comm.size(), size());
    sum += 1 << comm.rank();
    EXPECT_THAT(comm.name(), HasSubstr(GetParam().backend));
  });
  EXPECT_EQ(sum, (1 << size()) - 1);
}

TEST_P(Contract, AllReduce_EveryTypeAndOperation) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    for (DType dtype : kTypes) {
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax}) {
        for (size_t count : {size_t{1}, size_t{777}, size_t{20001}}) {
          Memory data(rank, false, count, dtype);
          data.fill([&](size_t i) { return contribution(comm.rank(), i); });
          comm.all_reduce(data.view, data.view, op, stream);
          data.expect([&](size_t i) { return expected_of(op, size(), i); },
                      std::string(name_of(dtype)) + " " + std::to_string(count));
        }
      }
    }
  });
}

TEST_P(Contract, AllReduce_EveryMemoryAndPlace) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    // Small, one piece, several pieces of the staging area and an odd rest.
    for (size_t count : {size_t{5}, size_t{40000}, size_t{200003}}) {
      for (bool own_in : {false, true}) {
        for (bool own_out : {false, true}) {
          Memory in(rank, own_in, count, DType::kFloat32);
          Memory out(rank, own_out, count, DType::kFloat32);
          in.fill([&](size_t i) { return contribution(comm.rank(), i); });
          comm.all_reduce(in.view, out.view, ReduceOp::kSum, stream);
          const auto sum = [&](size_t i) { return expected_of(ReduceOp::kSum, size(), i); };
          out.expect(sum, "out of place");
          in.expect([&](size_t i) { return contribution(comm.rank(), i); }, "in is not changed");
          comm.all_reduce(in.view, in.view, ReduceOp::kSum, stream);
          in.expect(sum, "in place");
        }
      }
    }
  });
}

TEST_P(Contract, AllReduceOfMegabytes_InManyPieces) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    Memory data(rank, false, 1100003, DType::kFloat32);
    data.fill([&](size_t i) { return contribution(comm.rank(), i); });
    comm.all_reduce(data.view, data.view, ReduceOp::kSum, stream);
    data.expect([&](size_t i) { return expected_of(ReduceOp::kSum, size(), i); }, "sum");
  });
}

TEST_P(Contract, AllReduceOfPartOfABuffer_LeavesTheRest) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    Memory data(rank, true, 100000, DType::kFloat32);
    data.fill([](size_t) { return 1; });
    const View part = {data.as<float>() + 333, 60001, DType::kFloat32};
    comm.all_reduce(part, part, ReduceOp::kSum, stream);
    data.expect([&](size_t i) { return i >= 333 && i < 333 + 60001 ? size() : 1; }, "part");
  });
}

TEST_P(Contract, AllReduceOneRankWithOwnMemoryOnly_Works) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    Memory shared(rank, true, 90000, DType::kInt32), other(rank, false, 90000, DType::kInt32);
    Memory& data = comm.rank() == 0 ? other : shared;
    data.fill([&](size_t i) { return contribution(comm.rank(), i); });
    comm.all_reduce(data.view, data.view, ReduceOp::kSum, stream);
    data.expect([&](size_t i) { return expected_of(ReduceOp::kSum, size(), i); }, "mixed");
  });
}

TEST_P(Contract, AllReduceOfRandomFloats_SameBitsOnAllRanksAndEveryTime) {
  for (size_t count : {size_t{1000}, size_t{200001}}) {
    std::vector<std::vector<float>> results(size() * 3);
    run([&](Rank& rank) {
      Communicator& comm = rank.comm;
      Stream& stream = rank.stream;
      for (int round = 0; round < 3; ++round) {
        Memory data(rank, round == 1, count, DType::kFloat32);
        std::mt19937 random(comm.rank());
        std::normal_distribution<float> normal;
        for (size_t i = 0; i < count; ++i) data.as<float>()[i] = normal(random);
        comm.all_reduce(data.view, data.view, ReduceOp::kSum, stream);
        rank.finish();
        results[round * size() + comm.rank()].assign(data.as<float>(), data.as<float>() + count);
      }
    });
    for (const auto& result : results) {
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), count * 4), 0);
    }
  }
}

TEST_P(Contract, Reduce_ReachesRootOnly) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    for (size_t count : {size_t{9}, size_t{140001}}) {
      for (int root = 0; root < size(); ++root) {
        for (bool own : {false, true}) {
          Memory in(rank, own, count, DType::kFloat32), out(rank, own, count, DType::kFloat32);
          in.fill([&](size_t i) { return contribution(comm.rank(), i); });
          const bool is_root = comm.rank() == root;
          comm.reduce(in.view, is_root ? out.view : View{}, ReduceOp::kSum, root, stream);
          in.expect([&](size_t i) { return contribution(comm.rank(), i); }, "in is not changed");
          out.expect([&](size_t i) { return is_root ? expected_of(ReduceOp::kSum, size(), i) : 0; },
                     "root " + std::to_string(root));
        }
      }
    }
  });
}

TEST_P(Contract, Broadcast_FromEveryRoot) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    for (size_t count : {size_t{3}, size_t{600001}}) {
      for (int root = 0; root < size(); ++root) {
        for (bool own : {false, true}) {
          Memory data(rank, own, count, DType::kUInt8);
          data.fill([&](size_t i) { return contribution(comm.rank(), i); });
          comm.broadcast(data.view, root, stream);
          data.expect([&](size_t i) { return contribution(root, i); },
                      "root " + std::to_string(root));
        }
      }
    }
  });
}

TEST_P(Contract, AllGather_InRankOrder) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    for (size_t count : {size_t{3}, size_t{140001}}) {
      for (bool own : {false, true}) {
        const auto gathered = [&](size_t i) {
          return contribution(static_cast<int>(i / count), i % count);
        };
        const auto mine = [&](size_t i) { return contribution(comm.rank(), i); };
        Memory in(rank, own, count, DType::kFloat32);
        Memory out(rank, own, count * size(), DType::kFloat32);
        in.fill(mine);
        comm.all_gather(in.view, out.view, stream);
        out.expect(gathered, "apart");
        // In place: at its own part of out, and at the start of out.
        for (size_t place : {comm.rank() * count, size_t{0}}) {
          out.fill([&](size_t) { return 100; });
          std::memcpy(out.as<float>() + place, in.view.data, in.view.bytes());
          const View inside = {out.as<float>() + place, count, DType::kFloat32};
          comm.all_gather(inside, out.view, stream);
          out.expect(gathered, "in place at " + std::to_string(place));
        }
      }
    }
  });
}

TEST_P(Contract, ReduceScatter_EachItsPart) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    for (size_t count : {size_t{3}, size_t{140001}}) {
      for (bool own : {false, true}) {
        const auto reduced = [&](size_t i) {
          return expected_of(ReduceOp::kSum, size(), comm.rank() * count + i);
        };
        Memory in(rank, own, count * size(), DType::kFloat32);
        Memory out(rank, own, count, DType::kFloat32);
        const auto fill = [&] { in.fill([&](size_t i) { return contribution(comm.rank(), i); }); };
        fill();
        comm.reduce_scatter(in.view, out.view, ReduceOp::kSum, stream);
        out.expect(reduced, "apart");
        for (size_t place : {comm.rank() * count, size_t{0}}) {
          fill();
          const View inside = {in.as<float>() + place, count, DType::kFloat32};
          comm.reduce_scatter(in.view, inside, ReduceOp::kSum, stream);
          rank.finish();
          std::memcpy(out.view.data, inside.data, inside.bytes());
          out.expect(reduced, "in place at " + std::to_string(place));
        }
      }
    }
  });
}

TEST_P(Contract, SendAndRecv_AroundTheRing) {
  if (size() == 1) GTEST_SKIP() << "nobody to send to";
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    const int next = (comm.rank() + 1) % size(), last = (comm.rank() + size() - 1) % size();
    for (size_t count : {size_t{0}, size_t{1}, size_t{16384}, size_t{200003}}) {
      Memory out(rank, false, std::max<size_t>(count, 1), DType::kInt32);
      Memory in(rank, false, std::max<size_t>(count, 1), DType::kInt32);
      out.view.count = in.view.count = count;
      for (int round = 0; round < 3; ++round) {
        out.fill([&](size_t i) { return contribution(comm.rank(), i) + round; });
        if (comm.rank() == 0) comm.send(out.view, next, stream);
        comm.recv(in.view, last, stream);
        if (comm.rank() != 0) comm.send(out.view, next, stream);
        in.expect([&](size_t i) { return contribution(last, i) + round; }, "message");
      }
    }
  });
}

TEST_P(Contract, Barrier_NobodyLeavesBeforeAllCame) {
  std::atomic<int> came{0};
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    for (int round = 1; round <= 20; ++round) {
      ++came;
      comm.barrier(stream);
      rank.finish();
      EXPECT_GE(came.load(), round * size());
      comm.barrier(stream);
      rank.finish();
    }
  });
}

TEST_P(Contract, ManyOperationsInARow_StayInOrder) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    std::mt19937 random(11);  // the same on all ranks
    Memory a(rank, true, 60000, DType::kInt64), b(rank, false, 60000, DType::kInt64);
    for (int round = 0; round < 100; ++round) {
      const size_t counts[] = {1, 100, 2048, 2049, 20000};
      Memory& memory = random() % 2 ? a : b;
      const View view = {memory.view.data, counts[random() % 5], DType::kInt64};
      const int root = static_cast<int>(random() % size());
      for (size_t i = 0; i < view.count; ++i) memory.as<int64_t>()[i] = comm.rank() + round;
      int64_t expected = 0;
      switch (random() % 3) {
        case 0:
          comm.all_reduce(view, view, ReduceOp::kSum, stream);
          expected = size() * round + size() * (size() - 1) / 2;
          break;
        case 1:
          comm.broadcast(view, root, stream);
          expected = root + round;
          break;
        default:
          comm.all_reduce(view, view, ReduceOp::kMax, stream);
          expected = size() - 1 + round;
      }
      rank.finish();
      for (size_t i = 0; i < view.count; ++i) ASSERT_EQ(memory.as<int64_t>()[i], expected);
    }
  });
}

TEST_P(Contract, OnAStreamWithAThread_RunsBehindTheCaller) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    const auto stream = rank.make_stream("comm");
    Memory data(rank, true, 50000, DType::kFloat32);
    data.fill([](size_t) { return 1; });
    for (int i = 0; i < 3; ++i) comm.all_reduce(data.view, data.view, ReduceOp::kMax, *stream);
    comm.all_reduce(data.view, data.view, ReduceOp::kSum, *stream);
    rank.finish(*stream);
    data.expect([&](size_t) { return size(); }, "after synchronize()");
  });
}

TEST_P(Contract, Allocate_ZeroedAlignedAndKept) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    std::vector<Buffer> kept;
    for (size_t bytes : {size_t{1}, size_t{5000}, size_t{3} << 20}) {
      Buffer buffer = comm.allocate(bytes);
      ASSERT_EQ(buffer.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
      const auto* data = static_cast<const char*>(buffer.data());
      EXPECT_EQ(std::count(data, data + bytes, 0), static_cast<long>(bytes));
      std::memset(buffer.data(), comm.rank() + 1, bytes);
      comm.barrier(stream);
      rank.finish();
      EXPECT_EQ(std::count(data, data + bytes, comm.rank() + 1), static_cast<long>(bytes));
      kept.push_back(std::move(buffer));
    }
    EXPECT_FALSE(comm.allocate(0));
  });
}

TEST_P(Contract, BufferAfterItsCommunicator_IsStillThere) {
  CommOptions options;
  options.backend = size() == 1 ? GetParam().backend : "inprocess";
  const std::unique_ptr<Device> device = GetParam().make_device();
  if (size() == 1) options.device = device.get();
  std::unique_ptr<Communicator> comm = make_communicator(options);
  Buffer buffer = comm->allocate(100);
  comm.reset();
  std::memset(buffer.data(), 7, 100);
  EXPECT_EQ(static_cast<char*>(buffer.data())[99], 7);
}

TEST_P(Contract, Split_GroupsWorkByThemselves) {
  if (size() == 1) GTEST_SKIP() << "nothing to split";
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    std::vector<int> evens, odds, reversed;
    for (int r = 0; r < size(); ++r) (r % 2 ? odds : evens).push_back(r);
    for (int r = size() - 1; r >= 0; --r) reversed.push_back(r);
    Memory data(rank, true, 30000, DType::kInt32);  // the parent's memory in the child's hands
    const std::vector<int>& mine = comm.rank() % 2 ? odds : evens;
    std::unique_ptr<Communicator> half = comm.split(mine);
    EXPECT_EQ(half->size(), static_cast<int>(mine.size()));
    EXPECT_EQ(mine[half->rank()], comm.rank());
    data.fill([](size_t) { return 1; });
    half->all_reduce(data.view, data.view, ReduceOp::kSum, stream);
    data.expect([&](size_t) { return half->size(); }, "half");

    std::unique_ptr<Communicator> again = comm.split(mine), back = comm.split(reversed);
    EXPECT_EQ(back->rank(), size() - 1 - comm.rank());
    Rank child{rank.device, *back, stream};
    Memory own(child, true, 30000, DType::kInt32);
    own.fill([&](size_t) { return comm.rank(); });
    back->broadcast(own.view, 0, stream);
    own.expect([&](size_t) { return size() - 1; }, "reversed");
    again->barrier(stream);
    comm.all_reduce(own.view, own.view, ReduceOp::kMax, stream);
    own.expect([&](size_t) { return size() - 1; }, "the parent goes on");
  });
}

TEST_P(Contract, SplitNamingOthersOnly_IsRefused) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    EXPECT_THROW(comm.split(std::vector<int>{}), Error);
    EXPECT_THROW(comm.split(std::vector<int>{size()}), Error);
    EXPECT_THROW(comm.split(std::vector<int>{comm.rank(), comm.rank()}), Error);
  });
}

TEST_P(Contract, ImpossibleArguments_AreRefusedAtTheCall) {
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    Stream& stream = rank.stream;
    float data[4] = {};
    const View view = {data, 4, DType::kFloat32}, wrong = {data, 4, DType::kInt32};
    EXPECT_THROW(comm.all_reduce(view, wrong, ReduceOp::kSum, stream), Error);
    EXPECT_THROW(comm.all_reduce(view, {data, 3, DType::kFloat32}, ReduceOp::kSum, stream), Error);
    EXPECT_THROW(comm.broadcast(view, size(), stream), Error);
    EXPECT_THROW(comm.send(view, comm.rank(), stream), Error);
  });
}

// --- failures ------------------------------------------------------------------------------------

ErrorCode code_of(const std::function<void()>& body, std::string* what) {
  try {
    body();
  } catch (const Error& error) {
    *what = error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing failed";
  return ErrorCode::kInternal;
}

struct Done {  // counts a rank that is through, also by a failed assertion
  ~Done() { ++count; }
  std::atomic<int>& count;
};

TEST_P(Contract, Abort_FailsOwnCallsWithWhyAndOthersNamingIt) {
  std::barrier everybody(size());
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    everybody.arrive_and_wait();  // has its communicator
    Memory data(rank, false, 100000, DType::kFloat32);
    const auto stream = rank.make_stream();  // ends before the memory that its work touches
    std::string what;
    const auto reduce = [&] {
      comm.all_reduce(data.view, data.view, ReduceOp::kSum, *stream);
      rank.finish(*stream);
    };
    if (comm.rank() == size() - 1) {
      comm.abort(Error(ErrorCode::kIo, "the disk is full"));
      comm.abort(Error(ErrorCode::kIo, "a second reason does not count"));
      EXPECT_EQ(code_of(reduce, &what), ErrorCode::kIo);
      EXPECT_THAT(what, HasSubstr("the disk is full"));
    } else {
      EXPECT_EQ(code_of(reduce, &what), ErrorCode::kPeerLost);
      EXPECT_THAT(what, HasSubstr("rank " + std::to_string(size() - 1) + " "));
      EXPECT_THAT(what, HasSubstr("the disk is full"));
    }
    EXPECT_THROW(reduce(), Error);  // and it stays so
  });
}

TEST_P(Contract, AbortFromAnotherThread_WakesThePendingCall) {
  if (size() == 1) GTEST_SKIP() << "waits for nobody";
  std::atomic<int> done{0};
  std::barrier everybody(size());
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    everybody.arrive_and_wait();  // has its communicator
    const auto stream = rank.make_stream();
    if (comm.rank() == 0) {  // never comes; stays until the others have given up
      while (done != size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    const Done counted{done};
    std::atomic<bool> started{false};
    Thread aborter("aborter", [&] {
      while (!started) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      comm.abort(Error(ErrorCode::kTimeout, "enough waited"));
    });
    started = true;
    std::string what;
    const auto wait = [&] {
      comm.barrier(*stream);
      rank.finish(*stream);
    };
    EXPECT_EQ(code_of(wait, &what), ErrorCode::kTimeout);
    EXPECT_THAT(what, HasSubstr("enough waited"));
  });
}

TEST_P(Contract, RankThatDoesNotCome_TimesOutNamed) {
  if (size() == 1) GTEST_SKIP() << "waits for nobody";
  GroupCase group = GetParam();
  group.timeout = std::chrono::milliseconds(1500);
  std::atomic<int> done{0};
  std::barrier everybody(size());
  run_ranks(group, [&](Rank& rank) {
    Communicator& comm = rank.comm;
    everybody.arrive_and_wait();  // has its communicator
    if (comm.rank() == 1) {
      while (done != size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    const Done counted{done};
    Memory data(rank, false, 100000, DType::kFloat32);
    const auto stream = rank.make_stream();
    std::string what;
    const auto reduce = [&] {
      comm.all_reduce(data.view, data.view, ReduceOp::kSum, *stream);
      rank.finish(*stream);
    };
    EXPECT_EQ(code_of(reduce, &what), ErrorCode::kTimeout);
    EXPECT_THAT(what, HasSubstr("rank 1 did not arrive within 1.5 s"));
  });
}

TEST_P(Contract, RankThatLeaves_IsNamed) {
  if (size() == 1) GTEST_SKIP() << "nobody else";
  std::barrier everybody(size());
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    everybody.arrive_and_wait();  // has its communicator
    if (comm.rank() == 1) return;
    const auto stream = rank.make_stream();
    std::string what;
    const auto wait = [&] {
      comm.barrier(*stream);
      rank.finish(*stream);
    };
    EXPECT_EQ(code_of(wait, &what), ErrorCode::kPeerLost);
    EXPECT_THAT(what, HasSubstr("rank 1 "));
  });
}

}  // namespace
}  // namespace fleet
