// Metrics of predicted classes, as scikit-learn defines them (sklearn.metrics). Pure functions of
// the confusion matrix. 0 where scikit-learn divides by 0 (zero_division), and without samples.
#pragma once

#include "models/class_pairs.h"

namespace fleet {

// accuracy_score: the part of the samples whose class is predicted.
double accuracy(const ClassPairs& pairs);
// The F1 of one class against the others: 2 hits / (samples of the class + predictions of it).
double f1_of_class(const ClassPairs& pairs, int64_t positive);
// f1_score(average="macro"): the mean over the classes that occur, true or predicted.
double macro_f1(const ClassPairs& pairs);
// matthews_corrcoef, for two or more classes (Gorodkin, 2004): the correlation of true and
// predicted classes, from -1 to 1. 0 if all samples have one class, or one class is predicted.
double matthews(const ClassPairs& pairs);

}  // namespace fleet
