// A node's view of the host: heartbeats in both directions, the host's silence and its clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/clock_offset.h"
#include "transport/control_messages.h"
#include "transport/datagram_heartbeats.h"
#include "transport/failure_detector.h"

namespace fleet {

// The time is an argument. The only I/O are datagrams to a host on another machine. Not
// thread-safe.
class HostMonitor {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Another host from now on: its clock is unknown.
  void on_host_changed() { clock_ = {}; }
  // A new connection to the host begins.
  void on_connecting() { datagrams_.close(); }
  // The host has admitted this node. peer: the host in gRPC's notation; "": on this machine, which
  // needs no datagrams. nodes: the number in the job.
  void on_welcome(const wire::Welcome& welcome, const std::string& peer, int nodes, Time now);
  // A message of the host has arrived. job_runs: its silence counts for longest_silence().
  void received(Time now, bool job_runs);
  // The echo of a heartbeat has arrived: a sample of the host's clock.
  void on_echo(const wire::Heartbeat& echo, Time now);

  // Whether the host has sent something within times().max_silence. Call it at due().
  bool is_alive(Time now, bool job_runs);
  // Forgives the silence so far.
  void excuse_silence(Time now) { detector_.received(now); }
  // The heartbeat for the stream, if one is due; sends the datagram that goes with it.
  std::optional<wire::NodeMessage> take_heartbeat(Time now);
  Time next_heartbeat() const { return next_heartbeat_; }
  // When to call is_alive() and take_heartbeat() again.
  Time due(Time now) const;

  const HeartbeatTimes& times() const { return detector_.times(); }
  Time::duration longest_silence() const { return longest_silence_; }
  // The host's clock when this node's shows `own_ns`; nullopt: not compared yet.
  std::optional<ClockOffset::Estimate> host_clock(int64_t own_ns) const {
    return clock_.at(own_ns);
  }
  // Puts the message's time, if any, on the host's clock, with the error; removes it if that clock
  // is unknown.
  void use_host_clock(wire::RankExit* exit) const;
  void use_host_clock(wire::StopRequest* request) const;

 private:
  FailureDetector detector_{{}, {}};
  NodeHeartbeats datagrams_;
  ClockOffset clock_;
  Time::duration longest_silence_{};
  int nodes_ = 1;
  uint64_t sent_ = 0;  // heartbeats
  Time next_heartbeat_{}, next_sample_{};
};

}  // namespace fleet
