// Which trainers of servers in async and geo are lost, and which processes have taken their places:
// pure logic.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fleet::ps {

// Each process of a trainer has an incarnation: 0, then 1, 2, ... for those that take its place. A
// lost trainer has the time `timeout` to come back. Times in seconds.
class TrainerRoster {
 public:
  TrainerRoster(int trainers, double timeout);

  // The connection of this trainer has ended without a goodbye.
  void lose(int trainer, int connection, double now);
  bool is_lost(int trainer) const { return lost_[place(trainer)].has_value(); }
  // Whether a process of this incarnation may take the place, even if the loss of its predecessor
  // is not known yet.
  bool accepts(int trainer, uint32_t incarnation) const {
    return incarnation > incarnations_[place(trainer)];
  }
  // It does. connection: the predecessor's, whose messages count no more; -1: none.
  void replace(int trainer, uint32_t incarnation, int connection);
  // Whether this was the connection of a process that is lost or replaced.
  bool is_retired(int connection) const { return retired_.contains(connection); }
  // No process takes the place of those that are lost now. Returns them.
  std::vector<int> abandon();
  // The trainers that have been away for too long.
  std::vector<int> overdue(double now) const;
  double next_deadline() const;

 private:
  static size_t place(int trainer) { return static_cast<size_t>(trainer); }

  const double timeout_;
  std::vector<uint32_t> incarnations_;       // by trainer
  std::vector<std::optional<double>> lost_;  // since when, by trainer
  std::set<int> retired_;
};

}  // namespace fleet::ps
