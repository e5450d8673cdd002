// SPDX-License-Identifier: BSL-1.0
// What a box says: which way up it is, then its characters.
#pragma once

#include <string>
#include <vector>

#include "image.hpp"
#include "session.hpp"

namespace ocr {

// Class 0 of the recognition network is the blank, the last one a space, those between are the dictionary's lines.
class dictionary {
public:
    // Throws, naming the file.
    explicit dictionary(const std::string& path);
    std::size_t classes() const { return words_.size(); }
    const std::string& operator[](std::size_t i) const { return words_[i]; }

private:
    std::vector<std::string> words_;
};

struct text_line {
    std::string text;
    double confidence = 0;  // mean probability of the characters read; 0 where there are none
};

// A box that is much taller than wide holds text that runs downwards: its corners move on by one, so that the text lies
// flat.
quad laid_flat(const quad& box);

// Starts from the opposite corner: the same box, read upside down.
quad turned(const quad& box);

// Probability that the text in the box is upside down: the mean over the beginning, middle and end of a long line.
double upside_down(session& network, const image& picture, const quad& box);

text_line recognise(session& network, const dictionary& words, const image& picture, const quad& box);

// Connectionist temporal classification, greedy (Graves et al. 2006): the likeliest class at each step, repetitions and
// blanks dropped. probabilities: steps x classes.
text_line decode(const float* probabilities, std::int64_t steps, const dictionary& words);

}  // namespace ocr
