// A file of fleetrun trace, decoded with the part of Perfetto's messages that we have, and checked:
// times of a track rise, slices nest, numbered texts are known.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "proto/perfetto_trace.pb.h"

namespace fleet {

struct DecodedSlice {
  std::string process, track, category, name;
  int64_t begin_ns = 0, end_ns = 0;
  size_t depth = 0;  // slices that contain it
  std::vector<uint64_t> flows;
  std::map<std::string, std::string> annotations;
};

struct DecodedTrace {
  std::vector<DecodedSlice> slices, instants;
  std::map<std::string, std::vector<std::string>> labels;  // by process

  std::vector<DecodedSlice> of(const std::string& process, const std::string& name) const {
    std::vector<DecodedSlice> found;
    for (const std::vector<DecodedSlice>* all : {&slices, &instants}) {
      std::ranges::copy_if(*all, std::back_inserter(found), [&](const DecodedSlice& slice) {
        return slice.process == process && slice.name == name;
      });
    }
    return found;
  }
};

class TraceDecoder {
 public:
  static DecodedTrace decode(const std::string& bytes) {
    TraceDecoder decoder;
    perfetto::Trace file;
    EXPECT_TRUE(file.ParseFromString(bytes));
    for (const perfetto::TracePacket& packet : file.packet()) decoder.take(packet);
    for (const auto& [track, open] : decoder.open_) EXPECT_TRUE(open.empty()) << "an open slice";
    return decoder.trace_;
  }

 private:
  static void learn(const google::protobuf::RepeatedPtrField<perfetto::InternedString>& news,
                    std::map<uint64_t, std::string>* known) {
    for (const auto& entry : news) {
      EXPECT_TRUE(known->try_emplace(entry.iid(), entry.name()).second);
    }
  }

  void take(const perfetto::TracePacket& packet) {
    if (packet.has_clock_snapshot()) {
      EXPECT_EQ(packet.clock_snapshot().primary_trace_clock(), 3u);
      EXPECT_EQ(packet.clock_snapshot().clocks_size(), 2);
    }
    learn(packet.interned_data().event_categories(), &categories_);
    learn(packet.interned_data().event_names(), &names_);
    learn(packet.interned_data().debug_annotation_names(), &annotations_);
    if (packet.has_track_descriptor()) take(packet.track_descriptor());
    if (packet.has_track_event()) take(packet, packet.track_event());
  }

  void take(const perfetto::TrackDescriptor& track) {
    if (track.has_process()) {
      const std::string& name = track.process().process_name();
      processes_[track.uuid()] = name;
      for (const auto& label : track.process().process_labels()) {
        trace_.labels[name].push_back(label);
      }
      EXPECT_TRUE(pids_.try_emplace(track.process().pid(), name).second) << "a pid twice";
      return;
    }
    EXPECT_TRUE(processes_.contains(track.parent_uuid()));
    EXPECT_TRUE(
        tracks_.try_emplace(track.uuid(), processes_[track.parent_uuid()], track.name()).second);
  }

  void take(const perfetto::TracePacket& packet, const perfetto::TrackEvent& event) {
    const auto at = static_cast<int64_t>(packet.timestamp());
    EXPECT_EQ(packet.timestamp_clock_id(), 3u);
    const auto track = tracks_.find(event.track_uuid());
    ASSERT_NE(track, tracks_.end());
    EXPECT_GE(at, last_[event.track_uuid()]) << track->second.second;
    last_[event.track_uuid()] = at;
    std::vector<DecodedSlice>& open = open_[event.track_uuid()];
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      ASSERT_FALSE(open.empty());
      open.back().end_ns = at;
      trace_.slices.push_back(open.back());
      open.pop_back();
      return;
    }
    ASSERT_EQ(event.category_iids_size(), 1);
    DecodedSlice slice{.process = track->second.first,
                       .track = track->second.second,
                       .category = categories_.at(event.category_iids(0)),
                       .name = names_.at(event.name_iid()),
                       .begin_ns = at,
                       .end_ns = at,
                       .depth = open.size(),
                       .flows = {event.flow_ids().begin(), event.flow_ids().end()}};
    for (const auto& annotation : event.debug_annotations()) {
      slice.annotations[annotations_.at(annotation.name_iid())] =
          annotation.has_string_value() ? annotation.string_value()
                                        : std::to_string(annotation.int_value());
    }
    const bool instant = event.type() == perfetto::TrackEvent::TYPE_INSTANT;
    (instant ? trace_.instants : open).push_back(std::move(slice));
  }

  DecodedTrace trace_;
  std::map<uint64_t, std::string> processes_, categories_, names_, annotations_;
  std::map<int, std::string> pids_;
  std::map<uint64_t, std::pair<std::string, std::string>> tracks_;
  std::map<uint64_t, int64_t> last_;
  std::map<uint64_t, std::vector<DecodedSlice>> open_;
};

}  // namespace fleet
