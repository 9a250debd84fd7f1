/* Reads and shows PREFIX.facts.json, which says how a dataset was made (encoder.h). Datasets of other programs have
 * none. */
#ifndef WORKER_DATA_FACTS_H
#define WORKER_DATA_FACTS_H

#include <jansson.h>
#include <stdio.h>

/* Returns the object, which the caller frees; NULL where there is none that can be read. */
json_t *wlb_facts_read(const char *prefix);
/* Prints them as a line; nothing for NULL, and for what is no text or number where that is meant. */
void wlb_facts_print(const json_t *facts, FILE *to);

#endif
