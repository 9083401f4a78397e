#include "analyze/shares.h"

typedef unsigned __int128 wide;

void sw__shares(const uint64_t *amounts, size_t count, uint64_t units, uint64_t *parts)
{
    wide sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += amounts[i];
        parts[i] = 0;
    }
    if (sum == 0) {
        return;
    }
    uint64_t given = 0;
    for (size_t i = 0; i < count; i++) {
        parts[i] = (uint64_t)((wide)amounts[i] * units / sum);
        given += parts[i];
    }
    /* Fewer units are left than there are amounts. Each goes to the largest remainder that has not had
     * one; there are at most a few dozen amounts. */
    wide ceiling = sum; /* remainders are below this */
    size_t from = 0;    /* of those equal to `ceiling`, the ones before this had theirs */
    while (given < units) {
        wide best = 0;
        size_t chosen = count;
        for (size_t i = 0; i < count; i++) {
            wide remainder = (wide)amounts[i] * units % sum;
            if (remainder > ceiling || (remainder == ceiling && i < from)) {
                continue;
            }
            if (remainder > best) {
                best = remainder;
                chosen = i;
            }
        }
        if (chosen == count) {
            return; /* cannot be: the remainders sum to what is left */
        }
        parts[chosen]++;
        given++;
        ceiling = best;
        from = chosen + 1;
    }
}

void sw__rescale(const uint64_t *amounts, size_t count, uint64_t from, uint64_t to,
                 uint64_t *out)
{
    wide passed = 0;
    uint64_t border = 0;
    for (size_t i = 0; i < count; i++) {
        passed += amounts[i];
        wide reached = passed < from ? passed : from;
        uint64_t next = from ? (uint64_t)(reached * to / from) : 0;
        out[i] = next - border;
        border = next;
    }
    if (count > 0) {
        out[0] += to - border; /* amounts that sum to less than they should */
    }
}
