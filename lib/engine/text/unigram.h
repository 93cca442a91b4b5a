// The loss that a model reaches without looking at the tokens before: a bound that any trained
// language model must beat.
#pragma once

#include "text/token_file.h"

namespace fleet::text {

// The mean of -log p over the tokens of `evaluated`, with p the share of a token among those of
// `training`, each counted once more so that none has probability 0 (Laplace). In nats a token; 0
// if `evaluated` is empty.
double unigram_loss(const TokenFile& training, const TokenFile& evaluated);

}  // namespace fleet::text
