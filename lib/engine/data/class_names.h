// The classes of labelled data: their names, and how many samples each has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/source.h"

namespace fleet::data {

// Class names by label: the source's, or data.class_names; empty if neither has any. classes:
// number in the model; 0: not checked. kUsage if the names do not fit.
std::vector<std::string> class_names(const Settings& data, const Source& source, int64_t classes);

// data.class_names alone, checked in the same way.
std::vector<std::string> given_class_names(const Settings& data, int64_t classes);

// The number of training samples of each class, or of labels that count: for class weights and
// sampling.
std::vector<int64_t> samples_by_class(const Source& source);

}  // namespace fleet::data
