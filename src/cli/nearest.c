/* Guessing what somebody meant to type. */
#include <string.h>

#include "cli/cli.h"

#define WORD_MOST 32

/* Edits that lead from one word to the other: characters added, removed, changed or swapped with their
 * neighbour. Longer words are cut. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MOST + 1];
    size_t a_length = strnlen(a, WORD_MOST);
    size_t b_length = strnlen(b, WORD_MOST);
    for (size_t k = 0; k <= b_length; k++) {
        rows[0][k] = k;
        rows[1][k] = 0;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            size_t best = above[k - 1] + (a[i - 1] != b[k - 1]);
            best = above[k] + 1 < best ? above[k] + 1 : best;
            best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
                size_t swapped = rows[(i - 2) % 3][k - 2] + 1;
                best = swapped < best ? swapped : best;
            }
            row[k] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *cli_nearest(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t length = strnlen(word, WORD_MOST);
    size_t most = length < 4 ? 1 : length / 2;
    for (size_t i = 0; i < count; i++) {
        /* The beginning of a word is a good guess at it. */
        if (length >= 2 && strncmp(words[i], word, length) == 0) {
            return words[i];
        }
        size_t edits = distance(word, words[i]);
        if (edits <= most) {
            nearest = words[i];
            most = edits ? edits - 1 : 0;
        }
    }
    return nearest;
}
