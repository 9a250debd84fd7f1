/*
 * The page of `wlb report`: one HTML file without requests to anything, for one run or for several beside each other.
 *
 * It is a fixed style and a fixed script (report/page/, in the program) around data as JSON. All text of the data
 * becomes text nodes; a policy of the page allows this style and this script alone, by their hashes. Charts are plain
 * SVG that the script draws, and no library is in the page: dygraphs, which Debian has, draws on a canvas, which has
 * no text for a screen reader, no focus for the keyboard, and prints as pixels.
 *
 * Whoever serves the page of a run that goes on gives `follow`, a path of the page's own origin that replies to GET
 * with new data as JSON, or with a status other than 200 and {"error": "..."}. The script asks for it every few seconds
 * and calls wlbUpdate(data), which draws the page anew without a reload; it stops asking once each run has ended.
 */
#ifndef COORDINATOR_WLB_REPORT_PAGE_H
#define COORDINATOR_WLB_REPORT_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "libwlb/wlb.h"

enum { WLB_REPORT_POLICY_BYTES = 512 };

/* Writes the page's Content-Security-Policy: nothing but its style and script, and requests to its own origin where it
 * `follows`. The page has it; a server adds what only a header can say, such as frame-ancestors. */
void wlb_report_policy(bool follows, char policy[WLB_REPORT_POLICY_BYTES]);

/* Returns the data of wlb_report_data() as JSON of ASCII without '<', '>' and '&', so that nothing in it ends or begins
 * an element. The caller frees it; NULL if out of memory. */
char *wlb_report_data_json(const json_t *data);

/* Writes the page. `follow` is a path of unreserved characters and '/', or NULL for a file. Returns -1 if out of
 * memory; what cannot be written is for the caller of ferror(). */
int wlb_report_page(const json_t *data, const char *follow, FILE *out, struct wlb_error *error);

#endif
