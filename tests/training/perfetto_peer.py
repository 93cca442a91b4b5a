"""Checks a file of fleetrun trace with Perfetto's own messages: perfetto_peer.py FILE RANKS ACTIVITIES

ACTIVITIES: how many fleetrun says that it wrote.
"""
import collections
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

MONOTONIC, BOOTTIME = pb.BuiltinClock.Value("BUILTIN_CLOCK_MONOTONIC"), pb.BuiltinClock.Value("BUILTIN_CLOCK_BOOTTIME")
BEGIN, END, INSTANT = (pb.TrackEvent.Type.Value("TYPE_" + kind) for kind in ("SLICE_BEGIN", "SLICE_END", "INSTANT"))

Slice = collections.namedtuple("Slice", "process track category name annotations flows")


def check(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def check_known_fields(message, path="trace"):
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    check(not unknown, "Perfetto does not know fields", unknown, "of", path)
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for one in [value] if hasattr(value, "ListFields") else value:
            check_known_fields(one, path + "." + field.name)


class Reader:
    """Takes packets in the order of the file. Tracks and interned texts must be known before they are used."""

    def __init__(self):
        self.processes, self.tracks, self.pids = {}, {}, {}
        self.texts = {"event_categories": {}, "event_names": {}, "debug_annotation_names": {}}
        self.open, self.last = collections.defaultdict(list), collections.defaultdict(int)
        self.slices, self.instants, self.clocks, self.cleared = [], [], None, False

    def take(self, packet):
        for kind, known in self.texts.items():
            for text in getattr(packet.interned_data, kind):
                check(text.iid and text.iid not in known, kind, text.iid, "has two texts")
                known[text.iid] = text.name
        if packet.HasField("clock_snapshot"):
            check(self.clocks is None and not self.last, "the clocks are not at the beginning")
            self.clocks = packet.clock_snapshot
        if packet.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            self.cleared = True
        if packet.HasField("track_descriptor"):
            self.take_track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self.take_event(packet, packet.track_event)

    def take_track(self, track):
        check(track.uuid and track.uuid not in self.processes and track.uuid not in self.tracks, "track", track.uuid, "twice")
        if track.HasField("process"):
            check(track.process.pid > 0 and track.process.pid not in self.pids, "pid", track.process.pid)
            self.pids[track.process.pid] = track.process.process_name
            self.processes[track.uuid] = track.process
            return
        check(track.parent_uuid in self.processes, "track", track.name, "has no parent")
        check(track.name, "a track without a name")
        self.tracks[track.uuid] = (self.processes[track.parent_uuid].process_name, track.name)

    def take_event(self, packet, event):
        check(packet.timestamp_clock_id == MONOTONIC, "an event has the clock", packet.timestamp_clock_id)
        check(self.cleared and packet.trusted_packet_sequence_id, "interned texts belong to no sequence")
        check(packet.sequence_flags & pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE, "an event of no sequence")
        check(event.track_uuid in self.tracks, "an event of an unknown track")
        check(packet.timestamp >= self.last[event.track_uuid], "time goes back on track", self.tracks[event.track_uuid])
        self.last[event.track_uuid] = packet.timestamp
        if event.type == END:
            check(self.open[event.track_uuid], "an end without a beginning on", self.tracks[event.track_uuid])
            self.slices.append(self.open[event.track_uuid].pop())
            return
        check(event.type in (BEGIN, INSTANT), "an event of type", event.type)
        one = self.described(event)
        (self.open[event.track_uuid] if event.type == BEGIN else self.instants).append(one)

    def described(self, event):
        categories, names, keys = self.texts.values()
        annotations = {}
        for one in event.debug_annotations:
            kind = one.WhichOneof("value")
            check(kind in ("int_value", "string_value"), "an annotation of kind", kind)
            annotations[keys[one.name_iid]] = getattr(one, kind)
        check(len(event.category_iids) == 1, "categories:", event.category_iids)
        return Slice(*self.tracks[event.track_uuid], categories[event.category_iids[0]], names[event.name_iid], annotations,
                     list(event.flow_ids))


def check_clocks(reader, ranks):
    check(reader.clocks is not None, "no clocks")
    check(reader.clocks.primary_trace_clock == MONOTONIC, "the clock of the axis:", reader.clocks.primary_trace_clock)
    check({clock.clock_id for clock in reader.clocks.clocks} == {MONOTONIC, BOOTTIME}, "clocks:", reader.clocks)
    for rank in ranks:
        about = [one for one in reader.instants if (one.process, one.name) == (rank, "about")]
        check(len(about) == 1, rank, "has no metadata")
        check(about[0].annotations.get("clock_error_ns", -1) >= 0, rank, "does not say how exact its clock is")
        check("clock_offset_ns" in about[0].annotations, rank, "does not say what its clock differs by")
        process = next(one for one in reader.processes.values() if one.process_name == rank)
        check(any(label.startswith("clock +-") for label in process.process_labels), rank, "has no label of its clock")


def check_flows(reader, ranks):
    calls = collections.defaultdict(lambda: collections.defaultdict(list))  # by (group, number), by rank
    first, last = {}, {}  # numbers of a group that each rank recorded
    for one in reader.slices:
        if one.category != "collective":
            check(not one.flows, one.name, "is no collective and has flows")
            continue
        group, number = one.annotations["group"], one.annotations["sequence"]
        check(len(one.flows) == 1, "collective", number, "has the flows", one.flows)
        calls[group, number][one.process].append(one)
        first[group, one.process] = min(first.get((group, one.process), number), number)
        last[group, one.process] = max(last.get((group, one.process), number), number)
    flows, joined = {}, 0
    for (group, number), by_rank in calls.items():
        same = {flow for found in by_rank.values() for one in found for flow in one.flows}
        check(len(same) == 1, "calls of", group, number, "have different flows")
        flow = same.pop()
        check(flow not in flows, "collectives", flows.get(flow), "and", (group, number), "have one flow")
        flows[flow] = (group, number)
        check(len({one.name for found in by_rank.values() for one in found}) == 1, group, number, "is of two kinds")
        # A rank began to record a step before or after the others.
        if not all(first.get((group, rank), number + 1) <= number <= last[group, rank] for rank in ranks):
            continue
        check({rank: len(found) for rank, found in by_rank.items()} == dict.fromkeys(ranks, 1), group, number, "is not of all ranks")
        joined += 1
    check(joined >= 5, "only", joined, "collectives join all ranks")
    return joined


def main(path, ranks, activities):
    trace = pb.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    check_known_fields(trace)
    reader = Reader()
    for packet in trace.packet:
        reader.take(packet)
    check(not any(reader.open.values()), "slices without an end:", [one for found in reader.open.values() for one in found])
    check(len(reader.slices) == int(activities), len(reader.slices), "slices of", activities, "activities")
    names = ["rank " + str(rank) for rank in range(int(ranks))]
    check(sorted(reader.pids.values()) == ["launcher, node 0"] + names, "processes:", sorted(reader.pids.values()))
    check_clocks(reader, names)
    joined = check_flows(reader, names)
    print(len(trace.packet), "packets,", len(reader.tracks), "tracks,", len(reader.slices), "slices;", joined,
          "collectives join all ranks, by Perfetto's own messages")


if __name__ == "__main__":
    main(*sys.argv[1:4])
