// The speeds of a machine, from which the time of a step is estimated.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/plan.h"

namespace fleet {

struct OpCost {
  // Type, kind (Arithmetic::kind) and element type: "conv2d 3x3 float32". Operations of one key
  // have comparable speed.
  std::string key;
  // How the first input of several dimensions is stored: "plain", "blocked", "strided" or
  // "opaque"; "" without such an input. Kernels of one operation may differ by it.
  std::string layout = {};
  DType dtype = DType::kFloat32;  // the first floating input's, else of the first output
  double operations = 0;          // additions and multiplications; 0: only the bytes count
  double bytes = 0;               // inputs read once and outputs written once, with padding
};

OpCost cost_of(const Plan& plan, const PlannedOp& planned);

// The measured time of one operation.
struct OpSample {
  std::string key;          // OpCost::key
  std::string layout = {};  // OpCost::layout
  double operations = 0, bytes = 0;
  double seconds = 0;
};

// The measured time of an all_reduce of this many bytes.
struct TransferSample {
  double bytes = 0, seconds = 0;
  double busy = 0;  // the part of it in which it kept a core of the rank busy, seconds
};

// Measured transfers of a transport. Seconds between measured sizes are interpolated, beyond them
// they grow with the bytes.
struct LinkRates {
  std::string transport;  // "shm", "gloo", ... as Communicator::name()
  int ranks = 0, nodes = 1;
  std::vector<TransferSample> all_reduce = {};  // ascending
  double seconds(double bytes) const;
  double busy(double bytes) const;

 private:
  double between(double bytes, double TransferSample::*value) const;
};

// The kind of convolutions whose peak may differ from that of products (MachineRates::peak).
inline constexpr const char* kDepthwise = "depthwise";

// The rates of one device while all ranks of its machine work.
struct MachineRates {
  std::string device;     // "AMD EPYC 9354 (1 of 2 cores a rank, 2 ranks)", "NVIDIA H200"
  std::string origin;     // "measured 2026-11-24 06:40 UTC", "data sheet of ..."
  bool estimate = false;  // from a card's name: nothing was measured
  // Operations a second of a large product, by type's name; under kDepthwise those of depthwise
  // convolutions of any type, if that is known.
  std::map<std::string, double> peak = {};
  double bytes_per_second = 0;  // memory, read and written together
  double op_seconds = 0;        // that every operation takes at least
  double step_seconds = 0;      // the host's work around a step
  double kernel_bytes = 0;      // memory of a prepared operation, besides the Plan's
  double library_bytes = 0;     // memory that the libraries take once
  double memory_bytes = 0;      // the device's; 0: unknown
  double idle_factor = 0;       // share of the time of transfers in which a core computes nothing
  std::vector<OpSample> samples = {};
  std::vector<LinkRates> links = {};

  // The least time by the peak, the memory and the overhead.
  double bound(const OpCost& cost) const;
  // The bound times what the nearest samples of the same key took of theirs; with the same layout,
  // if there are any. Without such samples, the bound alone.
  double seconds(const OpCost& cost) const;
  // The measured transfers of so many ranks; null if none.
  const LinkRates* find_link(const std::string& transport, int ranks, int nodes) const;
};

// Rates as the cache file has them: one JSON object. parse_rates() returns nullopt for a
// damaged text or another version's.
std::string rates_json(const MachineRates& rates);
std::optional<MachineRates> parse_rates(const std::string& text);

// $FLEET_RATES_FILE, if that is set; else <name>.json in fleetrun's folder under $XDG_CACHE_HOME or
// $HOME/.cache; "" if none is set. Characters that do not belong in a file's name are replaced.
std::string rates_file(const std::string& name);
// nullopt if there is no usable file.
std::optional<MachineRates> read_rates(const std::string& path);
// A file that cannot be written causes a warning. Path "": nothing is written.
void write_rates(const MachineRates& rates, const std::string& path);

// "h200", "h100", ...
std::vector<std::string> card_names();

// Nominal rates: data sheets' dense figures x 0.8 for products and x 0.9 for memory, as in
// scripts/gpu/roofline.py. Case and a leading "nvidia " do not matter. kUsage for an unknown name.
MachineRates rates_of_card(const std::string& name);

// Operations a second of dense products of this type, as the data sheet of the card names them: for
// model FLOPs utilization. device: as Device::name(), "NVIDIA H100 80GB HBM3". nullopt for a device
// that is none of the known cards, and for another type.
std::optional<double> data_sheet_peak(const std::string& device, DType dtype);

// Bytes a second of an all_reduce among the GPUs of one node (bus bandwidth), as NCCL's ring
// reaches it; an estimate.
double card_link_bytes(const std::string& name);

}  // namespace fleet
