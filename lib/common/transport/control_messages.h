// The messages of proto/control.proto, as fleet::wire.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "proto/control.pb.h"

namespace fleet {

namespace wire = control::v1;
using wire::CollectiveWait;
using wire::GenerationResult;
using wire::GroupCall;
using wire::GroupCalls;
using wire::JoinProgress;
using wire::LauncherEvent;
using wire::LiveReport;
using wire::PeerEvent;
using wire::RankCollectives;
using wire::RankEnding;
using wire::RankExit;
using wire::RankStack;
using wire::RankStall;
using wire::RankSteps;
using wire::RankUsage;
using wire::RecordedError;
using wire::RestartCommand;
using wire::SignalCommand;
using wire::StackCluster;
using wire::StackCommand;
using wire::StackReport;
using wire::Stacks;
using wire::StepReport;
using wire::StopCommand;
using wire::TraceAnswer;
using wire::TracedRank;
using wire::TraceReport;
using wire::TraceRequest;
using wire::Verdict;
using wire::World;
using wire::WorldId;

// The time between the stop signal to ranks and SIGKILL; nullopt: each launcher's own --grace.
using Grace = std::optional<std::chrono::milliseconds>;
wire::StopRequest stop_request(int signal, bool kill = false, Grace grace = {});
// The grace in a StopRequest or StopCommand.
template <typename Message>
Grace grace_of(const Message& message) {
  if (!message.has_grace_ms()) return std::nullopt;
  return std::chrono::milliseconds(std::max(0, message.grace_ms()));
}

// An Error as a message.
wire::Failure to_wire(const Error& error);
// kInternal for a code that this version does not know.
Error from_wire(const wire::Failure& failure);

// One message in its envelope: envelope(&wire::NodeMessage::mutable_exit, exit).
template <typename Envelope, typename Message>
Envelope envelope(Message* (Envelope::*part)(), std::type_identity_t<Message> message = {}) {
  Envelope whole;
  *(whole.*part)() = std::move(message);
  return whole;
}

using NamedValues = google::protobuf::RepeatedPtrField<wire::NamedValue>;
inline void add_value(std::string name, std::string value, NamedValues* to) {
  wire::NamedValue* added = to->Add();
  added->set_name(std::move(name));
  added->set_value(std::move(value));
}
inline std::map<std::string, std::string> values_of(const NamedValues& values) {
  std::map<std::string, std::string> all;
  for (const wire::NamedValue& one : values) all[one.name()] = one.value();
  return all;
}
// A repeated field of texts or numbers, for functions that take a vector.
inline std::vector<std::string> texts(const google::protobuf::RepeatedPtrField<std::string>& all) {
  return {all.begin(), all.end()};
}
inline std::vector<int> numbers(const google::protobuf::RepeatedField<int>& all) {
  return {all.begin(), all.end()};
}

}  // namespace fleet
