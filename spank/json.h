/* Writes JSON text. The plugin is loaded into every slurmstepd and links no JSON library for one object. */
#ifndef SPANK_JSON_H
#define SPANK_JSON_H

#include <stdio.h>

/* Writes `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD. */
void wlb_json_string(FILE *out, const char *text);

#endif
