// The parts of a report that evaluation.json gives: tables and pictures of classes and samples.
// Internal to the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewing/runs/run_history.h"

namespace fleet {

// A name of a class, cut; its number if the file has no names.
std::string shown_class(const JsonObject& evaluation, int64_t label);

// Whether its counts are pixels, not samples.
bool counts_pixels(const JsonObject& evaluation);

// HTML, "" for a file without these parts.
std::string class_table(const JsonObject& evaluation);
std::string confusion_tables(const JsonObject& evaluation);  // and the most frequent confusions
std::string evaluation_charts(const JsonObject& evaluation);
std::string worst_samples(const JsonObject& evaluation);

const char* evaluation_style();
// Sorts tables of the class "sorted" by the column whose head is clicked. Without it they are as
// they are.
const char* sorting_script();
// Of the script, for the page's Content-Security-Policy: "sha256-...".
const char* sorting_script_hash();

}  // namespace fleet
