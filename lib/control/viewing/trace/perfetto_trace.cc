#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "base/number_text.h"
#include "base/text.h"
#include "proto/perfetto_trace.pb.h"
#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

namespace pf = perfetto;

constexpr uint32_t kMonotonic = 3, kBoottime = 6;
constexpr uint32_t kSequence = 1;
// Events before the first activity by more than this are only told, not placed.
constexpr int64_t kFarBefore = 10'000'000'000;

uint64_t hash_of(std::string_view text, uint64_t more) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&](uint8_t byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (const char c : text) mix(static_cast<uint8_t>(c));
  for (int i = 0; i < 8; ++i) mix(static_cast<uint8_t>(more >> (8 * i)));
  return hash;
}

// Texts that are written once and numbered from then on.
class Interned {
 public:
  uint64_t number(const std::string& text,
                  google::protobuf::RepeatedPtrField<pf::InternedString>* news) {
    const auto [at, added] = numbers_.try_emplace(text, numbers_.size() + 1);
    if (added) {
      pf::InternedString* entry = news->Add();
      entry->set_iid(at->second);
      entry->set_name(printable(text));
    }
    return at->second;
  }

 private:
  // Perfetto's readers expect UTF-8.
  static std::string printable(const std::string& text) {
    std::string clean = text;
    for (char& c : clean) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
    }
    return clean;
  }
  std::map<std::string, uint64_t> numbers_;
};

struct Annotation {
  std::string name;
  std::optional<int64_t> number;
  std::string text;
};

class Writer {
 public:
  explicit Writer(const std::function<void(std::string_view)>& write) : write_(write) {}

  void begin(int64_t at_ns) {
    pf::Trace file;
    pf::TracePacket& packet = *file.add_packet();
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(pf::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    pf::ClockSnapshot& clocks = *packet.mutable_clock_snapshot();
    clocks.set_primary_trace_clock(kMonotonic);
    for (const uint32_t clock : {kMonotonic, kBoottime}) {
      pf::ClockSnapshot::Clock& one = *clocks.add_clocks();
      one.set_clock_id(clock);
      one.set_timestamp(static_cast<uint64_t>(at_ns));
    }
    put(file);
  }

  uint64_t process(const std::string& name, int pid, const std::vector<std::string>& labels) {
    pf::Trace file;
    pf::TrackDescriptor& track = *descriptor(&file);
    track.mutable_process()->set_pid(pid);
    track.mutable_process()->set_process_name(name);
    for (const std::string& label : labels) track.mutable_process()->add_process_labels(label);
    put(file);
    return track.uuid();
  }

  uint64_t track(const std::string& name, uint64_t parent, int order) {
    pf::Trace file;
    pf::TrackDescriptor& track = *descriptor(&file);
    track.set_name(name);
    track.set_parent_uuid(parent);
    track.set_sibling_order_rank(order);
    put(file);
    return track.uuid();
  }

  void begin_slice(uint64_t track, int64_t at_ns, const std::string& category,
                   const std::string& name, const std::vector<Annotation>& annotations,
                   std::optional<uint64_t> flow) {
    pf::Trace file;
    pf::TrackEvent& event = *this->event(&file, track, at_ns, pf::TrackEvent::TYPE_SLICE_BEGIN);
    describe(&file, category, name, annotations);
    if (flow) event.add_flow_ids(*flow);
    put(file);
  }

  void end_slice(uint64_t track, int64_t at_ns) {
    pf::Trace file;
    event(&file, track, at_ns, pf::TrackEvent::TYPE_SLICE_END);
    put(file);
  }

  void instant(uint64_t track, int64_t at_ns, const std::string& name,
               const std::vector<Annotation>& annotations) {
    pf::Trace file;
    event(&file, track, at_ns, pf::TrackEvent::TYPE_INSTANT);
    describe(&file, "launcher", name, annotations);
    put(file);
  }

 private:
  pf::TrackDescriptor* descriptor(pf::Trace* file) {
    pf::TrackDescriptor* track = file->add_packet()->mutable_track_descriptor();
    track->set_uuid(++last_track_);
    return track;
  }

  static pf::TrackEvent* event(pf::Trace* file, uint64_t track, int64_t at_ns,
                               pf::TrackEvent::Type type) {
    pf::TracePacket& packet = *file->add_packet();
    packet.set_timestamp(static_cast<uint64_t>(std::max<int64_t>(at_ns, 0)));
    packet.set_timestamp_clock_id(kMonotonic);
    packet.set_trusted_packet_sequence_id(kSequence);
    packet.set_sequence_flags(pf::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    packet.mutable_track_event()->set_type(type);
    packet.mutable_track_event()->set_track_uuid(track);
    return packet.mutable_track_event();
  }

  void describe(pf::Trace* file, const std::string& category, const std::string& name,
                const std::vector<Annotation>& annotations) {
    pf::TracePacket& packet = *file->mutable_packet(0);
    pf::TrackEvent& event = *packet.mutable_track_event();
    pf::InternedData news;
    event.add_category_iids(categories_.number(category, news.mutable_event_categories()));
    event.set_name_iid(names_.number(name, news.mutable_event_names()));
    for (const Annotation& annotation : annotations) {
      pf::DebugAnnotation& one = *event.add_debug_annotations();
      one.set_name_iid(annotations_.number(annotation.name, news.mutable_debug_annotation_names()));
      if (annotation.number) {
        one.set_int_value(*annotation.number);
      } else {
        one.set_string_value(annotation.text);
      }
    }
    if (news.ByteSizeLong() > 0) *packet.mutable_interned_data() = std::move(news);
  }

  void put(const pf::Trace& file) {
    bytes_.clear();
    file.AppendToString(&bytes_);
    write_(bytes_);
  }

  const std::function<void(std::string_view)>& write_;
  std::string bytes_;
  uint64_t last_track_ = 0;
  Interned categories_, names_, annotations_;
};

// The annotation that says what the value of such an activity is; nullptr: nothing.
const char* value_name(const ActivityName& name) {
  if (name.category == "collective") return "sequence";
  if (name.category == "operation" || name.category == "step") return "step";
  if (name.name == kTraceNames[1].name) return "batch";
  return name.category == "input" ? "sample" : nullptr;
}

struct Placed {
  std::string name;
  int64_t at_ns = 0;
  std::vector<Annotation> annotations;
};

std::string event_text(const LauncherEvent& event) {
  const std::string number = std::to_string(event.number());
  switch (event.kind()) {
    case LauncherEvent::GENERATION:
      return "generation " + number + " begins";
    case LauncherEvent::STARTED:
      return "started as process " + number;
    case LauncherEvent::FIRST_OUTPUT:
      return "first output";
    case LauncherEvent::FIRST_STEP:
      return "first step done";
    case LauncherEvent::SIGNAL:
      return "launcher sends " + signal_name(event.number());
    case LauncherEvent::EXITED:
      return "exited with code " + number;
    case LauncherEvent::KILLED:
      return "ended by " + signal_name(event.number());
    case LauncherEvent::STOPPED:
      return "stopped by " + signal_name(event.number());
    case LauncherEvent::CONTINUED:
      return "continues";
    default:
      return "event " + std::to_string(event.kind());
  }
}

std::string microseconds(int64_t ns) {
  return format_printf("%.1f us", static_cast<double>(ns) / 1e3);
}

class JobWriter {
 public:
  JobWriter(const JobTrace& trace, const std::function<void(std::string_view)>& write)
      : trace_(trace), out_(write) {}

  void run() {
    find_beginning();
    out_.begin(beginning_);
    for (const auto& [number, node] : trace_.nodes) {
      if (node.calibrated) write_launcher(node);
    }
    for (const RankTrace& rank : trace_.ranks) write_rank(rank);
  }

 private:
  const TraceClock& clock_of(int node_rank) const { return trace_.nodes.at(node_rank).clock; }

  // local_rank: of what; -1: of no rank.
  static std::vector<LauncherEvent> events_of(const TracedNode& node, int local_rank) {
    std::vector<LauncherEvent> found;
    for (const auto* events : {&node.events, &node.later}) {
      std::ranges::copy_if(*events, std::back_inserter(found), [&](const LauncherEvent& event) {
        return (event.has_local_rank() ? event.local_rank() : -1) == local_rank;
      });
    }
    std::ranges::stable_sort(found, {}, [](const LauncherEvent& event) { return event.at_ns(); });
    return found;
  }

  // Of activities; without any, of events.
  void find_beginning() {
    int64_t first = std::numeric_limits<int64_t>::max(), event = first;
    for (const RankTrace& rank : trace_.ranks) {
      for (const TraceRecord& record : rank.records) {
        first = std::min(first, record.begin_ns + clock_of(rank.node_rank).offset_ns);
      }
    }
    for (const auto& [number, node] : trace_.nodes) {
      for (const auto* events : {&node.events, &node.later}) {
        for (const LauncherEvent& one : *events) {
          event = std::min(event, one.at_ns() + node.clock.offset_ns);
        }
      }
    }
    const bool any = first != std::numeric_limits<int64_t>::max();
    const bool none = !any && event == first;
    beginning_ = none ? 0 : any ? first : event;
    earliest_ = any ? first - kFarBefore : beginning_;
  }

  std::vector<std::string> labels_of(const TracedNode& node) const {
    return {"node " + std::to_string(node.node_rank) +
                (node.hostname.empty() ? "" : " (" + node.hostname + ")"),
            "clock +-" + microseconds(node.clock.error_ns)};
  }

  std::vector<Annotation> clock_annotations(const TracedNode& node) const {
    return {{"clock_offset_ns", node.clock.offset_ns, {}},
            {"clock_error_ns", node.clock.error_ns, {}}};
  }

  // Instants in order of time; those that are far before the rest are told by the first one.
  void write_events(const std::vector<LauncherEvent>& events, const TracedNode& node,
                    std::vector<Annotation> about, uint64_t track) {
    std::vector<const LauncherEvent*> placed;
    for (const LauncherEvent& event : events) {
      const int64_t at = event.at_ns() + node.clock.offset_ns;
      if (at >= earliest_) {
        placed.push_back(&event);
        continue;
      }
      about.push_back({event_text(event), std::nullopt,
                       format_printf("%.3f s before", static_cast<double>(beginning_ - at) / 1e9)});
    }
    const int64_t first = placed.empty()
                              ? beginning_
                              : std::min(beginning_, placed[0]->at_ns() + node.clock.offset_ns);
    out_.instant(track, first, "about", about);
    for (const LauncherEvent* event : placed) {
      out_.instant(track, event->at_ns() + node.clock.offset_ns, event_text(*event),
                   {{"generation", event->generation(), {}}});
    }
  }

  void write_launcher(const TracedNode& node) {
    const std::string name = "launcher, node " + std::to_string(node.node_rank);
    const uint64_t process =
        out_.process(name, process_number(node.node_rank, -1), labels_of(node));
    write_events(events_of(node, -1), node, clock_annotations(node),
                 out_.track("events", process, 0));
  }

  // Pids of several nodes may be equal, but Perfetto takes equal ones for one process.
  int process_number(int node_rank, int local_rank) const {
    return 1 + node_rank * 10'000 + local_rank + 1;
  }

  void write_rank(const RankTrace& rank) {
    const TracedNode& node = trace_.nodes.at(rank.node_rank);
    const std::string name =
        (rank.rank.server() ? "server " : "rank ") + std::to_string(rank.rank.rank());
    const uint64_t process =
        out_.process(name, process_number(rank.node_rank, rank.rank.local_rank()), labels_of(node));
    std::vector<Annotation> about = clock_annotations(node);
    about.push_back({"pid", rank.rank.pid(), {}});
    about.push_back({"steps", rank.rank.steps_done(), {}});
    if (rank.rank.dropped() > 0) {
      about.push_back({"dropped", static_cast<int64_t>(rank.rank.dropped()), {}});
    }
    write_events(events_of(node, rank.rank.local_rank()), node, std::move(about),
                 out_.track("launcher", process, 0));
    std::map<uint32_t, std::vector<TraceRecord>> tracks;
    for (const TraceRecord& record : rank.records) tracks[record.track].push_back(record);
    int order = 0;
    for (auto& [number, records] : tracks) {
      const auto found = rank.tracks.find(number);
      const std::string track =
          found == rank.tracks.end() ? "track " + std::to_string(number) : found->second;
      write_track(rank, &records, out_.track(track, process, ++order));
    }
  }

  // Activities follow each other or contain each other: an end never comes before what it contains.
  void write_track(const RankTrace& rank, std::vector<TraceRecord>* records, uint64_t track) {
    const int64_t offset = clock_of(rank.node_rank).offset_ns;
    std::ranges::stable_sort(*records, [](const TraceRecord& a, const TraceRecord& b) {
      return std::pair(a.begin_ns, -a.end_ns) < std::pair(b.begin_ns, -b.end_ns);
    });
    std::vector<int64_t> open;  // their ends
    const auto close_until = [&](int64_t at) {
      while (!open.empty() && open.back() <= at) {
        out_.end_slice(track, open.back() + offset);
        open.pop_back();
      }
    };
    for (const TraceRecord& record : *records) {
      close_until(record.begin_ns);
      write_begin(rank, record, track, offset);
      const int64_t end = std::max(record.begin_ns, record.end_ns);
      open.push_back(open.empty() ? end : std::min(end, open.back()));
    }
    close_until(std::numeric_limits<int64_t>::max());
  }

  void write_begin(const RankTrace& rank, const TraceRecord& record, uint64_t track,
                   int64_t offset) {
    const auto found = rank.names.find(record.name);
    if (found == rank.names.end()) {
      return out_.begin_slice(track, record.begin_ns + offset, "?", "?", {}, std::nullopt);
    }
    const ActivityName& name = found->second;
    std::vector<Annotation> annotations;
    if (!name.detail.empty()) {
      const char* what = name.category == "collective" ? "for" : "output";
      annotations.push_back({what, std::nullopt, name.detail});
    }
    if (const char* what = value_name(name)) annotations.push_back({what, record.value, {}});
    std::optional<uint64_t> flow;
    if (!name.key.empty()) {
      annotations.push_back({"group", std::nullopt, name.key});
      // Ranks of another generation begin to count again.
      const std::string key = name.key + "/" + std::to_string(rank.rank.generation());
      flow = hash_of(key, static_cast<uint64_t>(record.value));
    }
    out_.begin_slice(track, record.begin_ns + offset, name.category, name.name, annotations, flow);
  }

  const JobTrace& trace_;
  Writer out_;
  int64_t beginning_ = 0;  // the first activity's
  int64_t earliest_ = 0;   // at which an event has a place
};

}  // namespace

void write_perfetto(const JobTrace& trace, const std::function<void(std::string_view)>& write) {
  JobWriter(trace, write).run();
}

}  // namespace fleet
