// Straight lines by weighted least squares.
#pragma once

#include "../elementary.h"

namespace nlnet {
namespace {

struct Line {
    double slope, foot;

    double at(double x) const { return slope * x + foot; }
    // How many times the root of its value is larger at the right end than at the left one.
    double growth(double left, double right) const {
        constexpr double least = 1e-6;
        return square_root(larger_number(at(right), least) / larger_number(at(left), least));
    }
};

// Sums over points (x, y), from which a line follows.
class LineSums {
  public:
    explicit LineSums(double origin) : origin_(origin) {}  // x that the points are near to

    void add(double x, double y, double weight) {
        const double from_origin = x - origin_;
        count_++;
        total_ += weight;
        x_ += weight * from_origin;
        xx_ += weight * from_origin * from_origin;
        y_ += weight * y;
        xy_ += weight * from_origin * y;
    }

    // The line. Where all points have one x, any slope would do: the line with the smallest
    // coefficients is taken.
    Line fit() const {
        const double mean_x = x_ / total_, mean_y = y_ / total_;
        const double spread = larger_number(xx_ - x_ * mean_x, 0);  // weight * (x - mean)^2
        const double x = mean_x + origin_;
        // Eigenvalues of the normal equations' matrix [[a, b], [b, total]].
        const double a = spread + total_ * x * x, b = total_ * x;
        const double half = (a - total_) / 2, root = square_root(half * half + b * b);
        const double largest = (a + total_) / 2 + root, least = spread * total_ / largest;
        const double limit = 2.2e-16 * double(count_);  // the precision of doubles
        if (least > limit * limit * largest) {
            const double slope = (xy_ - x_ * mean_y) / spread;
            return {slope, mean_y - slope * x};
        }
        // Along the eigenvector of the largest eigenvalue.
        const double u = b, v = half > 0 ? b * b / (root + half) : root - half;
        const double length = u * u + v * v;
        const double full_xy = xy_ + origin_ * y_;
        if (!(length > 0)) return a >= total_ ? Line{full_xy / a, 0} : Line{0, mean_y};
        const double along = (u * full_xy + v * y_) / (length * largest);
        return {along * u, along * v};
    }

    // The line that is 0 at the origin.
    Line fit_through_origin() const {
        const double slope = xx_ > 0 ? xy_ / xx_ : 0;
        return {slope, -slope * origin_};
    }

  private:
    double origin_;
    int64_t count_ = 0;
    double total_ = 0, x_ = 0, xx_ = 0, y_ = 0, xy_ = 0;
};

}  // namespace
}  // namespace nlnet
