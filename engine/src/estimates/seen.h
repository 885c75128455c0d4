// What the eye sees of an image as a whole, and which kind of noise that is.
#pragma once

#include "maps.h"

namespace nlnet {
namespace {

struct Seen {
    double odds[kKinds];  // the probability of each kind
    Line line;            // variance of the noise over the brightness, on the scale of the sample
    double variation;     // how many times the noise varies with the brightness
    double sigma;         // of luma at the full size, on average over the image, in its units
    double half;          // the same at half the size
    bool fine;            // values are finer than those of 8 bits: they are from no lossy file

    // The probability that there is noise, as often right as it says.
    double noisy() const {
        const double none = within(odds[NLNET_NO_NOISE], 1e-6, 1 - 1e-6);
        const double logit = log_of(none / (1 - none));
        return 1 / (1 + exp_of(kCalibrationShift + kCalibrationSlope * logit));
    }

    // Whether pixels have noise of their own. Whether that is of photons, no single place tells,
    // but how it grows with the brightness.
    bool is_uncorrelated() const {
        const double octave = 2 * half / larger_number(sigma, 1e-30);
        // Nothing has smoothed it: neither its spectrum nor a lossy file says so.
        if (fine && odds[NLNET_NO_NOISE] < kImprobable && octave < kOctave) return true;
        return odds[NLNET_WHITE_NOISE] + odds[NLNET_PHOTON_NOISE] >
               larger_number(odds[NLNET_NO_NOISE], odds[NLNET_CAMERA_NOISE]);
    }

    // The most probable kind; white for any uncorrelated noise.
    nlnet_found_kind kind() const {
        if (is_uncorrelated()) return NLNET_WHITE_NOISE;
        return noisy() > kDoubtful ? NLNET_CAMERA_NOISE : NLNET_NO_NOISE;
    }

    // The probability that there is noise, or none if that is the kind.
    double certainty() const { return kind() == NLNET_NO_NOISE ? 1 - noisy() : noisy(); }

    // Whether it is photon noise more probably than not; how it grows with the brightness decides.
    bool looks_like_photons() const { return odds[NLNET_PHOTON_NOISE] > kProbable; }
    bool may_be_photons() const { return line.growth(0, 255) >= kGrowth; }
    // Whether the noise depends on the brightness in any way.
    bool varies() const { return variation > kVariation; }
};

}  // namespace
}  // namespace nlnet
