/* How far a mean of neighbouring values can be trusted.
 *
 * Steps that follow each other are alike: the mean of n of them is known less well than that of n independent values. Here
 * they are drawn in blocks of neighbours, as long as the values themselves ask for. */
#ifndef SW_ANALYZE_BOOTSTRAP_H
#define SW_ANALYZE_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#define SW__DRAWS 2000

/* A mean and how well it is known. NaN: not known. */
struct sw__mean {
    double mean;
    double variance; /* of the mean */
    double freedom;  /* degrees of freedom of `variance` */
};

/* The mean of values in the order in which they came. One value has a mean and no variance. 0 or SW_ENOMEM. */
int sw__mean_of(const double *values, size_t count, struct sw__mean *out);
/* The same, and what means of such series would be: adds weight * (drawn mean - mean) to each of `draws`. Equal input gives
 * equal draws. */
int sw__mean_draws(const double *values, size_t count, double weight,
                   double draws[SW__DRAWS], struct sw__mean *out);
/* The length of the blocks that a series asks for (Politis and White 2004, as corrected in 2009). */
size_t sw__block_length(const double *values, size_t count);

/* The estimate of a sum or difference: variances add up, degrees of freedom by Welch and Satterthwaite. The mean of `into`
 * grows by weight * that of `from`. An estimate without variance adds none. */
void sw__mean_add(struct sw__mean *into, const struct sw__mean *from, double weight);

/* The median, and the interval of 95 % that its own spread gives (Woodruff). `low` and `high` are NaN below two values. */
struct sw__median {
    double value, low, high;
};
int sw__median_of(const double *values, size_t count, struct sw__median *out);

/* Student's t: the value that 95 % are within, and the probability of one as far from 0. */
double sw__t_bound(double freedom);
double sw__t_probability(double t, double freedom);

/* Holm's correction: each p becomes the level at which it would just be believed among all of them. NaN is none of them.
 * `order` is scratch for `count` places. */
void sw__holm(double *p, size_t count, size_t *order);

#endif
