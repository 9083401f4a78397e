/* Shares of a whole that really sum to it. */
#ifndef SW_ANALYZE_SHARES_H
#define SW_ANALYZE_SHARES_H

#include <stddef.h>
#include <stdint.h>

/* Divides `units` among `count` amounts, so that the parts sum to `units` exactly (largest remainder;
 * ties go to the earlier one). All parts are 0 when the amounts are. */
void sw__shares(const uint64_t *amounts, size_t count, uint64_t units, uint64_t *parts);

/* Converts `count` amounts that sum to `from` into amounts that sum to `to`, each by its borders, so that
 * nothing is lost by rounding. */
void sw__rescale(const uint64_t *amounts, size_t count, uint64_t from, uint64_t to,
                 uint64_t *out);

#endif
