/* Rules: notes. */
#include "analyze/findings.h"

void sw__rules_notes(sw_findings *all)
{
    (void)all;
}
