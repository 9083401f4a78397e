/* Facts that the program, or a language's binding, says about its process. They outlive a recording, so that forks and later
 * recordings have them too. */
#include "base/memory.h"
#include "record/recorder.h"
#include <string.h>

#define GIVEN_MOST 128

/* session.lock guards it. A fork finds it whole: the lock is held during the fork. */
static struct {
    char *key, *value; /* one allocation, of the key */
} given[GIVEN_MOST];
static size_t given_count;

static char *copy_pair(const char *key, size_t key_length, const char *value,
                       size_t value_length)
{
    char *pair = sw__alloc(key_length + value_length + 2);
    if (pair) {
        memcpy(pair, key, key_length + 1);
        memcpy(pair + key_length + 1, value, value_length + 1);
    }
    return pair;
}

/* False when it is known already, or there is no room for it. */
static bool keep(const char *key, const char *value)
{
    size_t i = 0;
    while (i < given_count && strcmp(given[i].key, key) != 0) {
        i++;
    }
    if (i == GIVEN_MOST || (i < given_count && strcmp(given[i].value, value) == 0)) {
        return false;
    }
    char *pair = copy_pair(key, strlen(key), value, strlen(value));
    if (!pair) {
        return false;
    }
    if (i < given_count) {
        sw__free(given[i].key);
    } else {
        given_count++;
    }
    given[i].key = pair;
    given[i].value = pair + strlen(pair) + 1;
    return true;
}

void sw_fact(const char *key, const char *value)
{
    struct sw__session *session = &sw__session;
    if (!key || !*key || !value || sw__holding) {
        return;
    }
    if (sw__wiped()) {
        sw__forked_child();
    }
    sw__lock(&session->lock);
    if (keep(key, value) && atomic_load(&session->state) == SW__SESSION_ON) {
        sw__names_fact(key, value);
    }
    sw__unlock(&session->lock);
}

void sw__given_facts_put(void)
{
    for (size_t i = 0; i < given_count; i++) {
        sw__fact_put(NULL, given[i].key, given[i].value);
    }
}
