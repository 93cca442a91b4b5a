// Ranks as threads that exchange values, without a communicator.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread.h"
#include "models/task.h"

namespace fleet {

// What the ranks share.
class ThreadRanks {
 public:
  explicit ThreadRanks(int world) : given_(static_cast<size_t>(world)), here_(world) {}

  class Exchange : public RankExchange {
   public:
    Exchange(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(static_cast<size_t>(rank)) {}
    void sum(std::span<double> values) override {
      const auto all = gather({values.begin(), values.end()});
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = 0;
        for (const auto& rank : all) values[i] += rank[i];
      }
    }
    std::vector<std::vector<double>> gather(const std::vector<double>& own) override {
      ranks_.given_[rank_] = own;
      ranks_.here_.arrive_and_wait();
      std::vector<std::vector<double>> all = ranks_.given_;
      ranks_.here_.arrive_and_wait();
      return all;
    }

   private:
    ThreadRanks& ranks_;
    const size_t rank_;
  };

  // Calls `body` on each rank, in a thread of its own.
  static void run(int world, const std::function<void(RankExchange&, int rank)>& body) {
    ThreadRanks ranks(world);
    std::vector<Thread> threads;
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back("rank" + std::to_string(rank), [&, rank] {
        Exchange exchange(ranks, rank);
        body(exchange, rank);
      });
    }
    for (Thread& thread : threads) thread.join();
  }

 private:
  std::vector<std::vector<double>> given_;  // by rank
  std::barrier<> here_;
};

}  // namespace fleet
