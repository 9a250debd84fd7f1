/* Fields of the coordinator's replies as short texts; a field that is absent or null is printed as "-". */
#ifndef COORDINATOR_WLB_OUTPUT_REPLY_FIELDS_H
#define COORDINATOR_WLB_OUTPUT_REPLY_FIELDS_H

#include <stddef.h>

#include <jansson.h>

/* The object's text, or `otherwise`; lives as long as the object. */
const char *wlb_field_text(const json_t *object, const char *key, const char *otherwise);

/* "run_id" and, where Slurm shows its job by another name, that: "17 (15_2)". */
void wlb_field_run(const json_t *object, char *text, size_t size);
void wlb_field_number(const json_t *object, const char *key, char *text, size_t size);
void wlb_field_real(const json_t *object, const char *key, int digits, char *text, size_t size);
/* "1.25 GB", "12.0 MB"; "-" for 0 as well. */
void wlb_bytes_text(double bytes, char *text, size_t size);
void wlb_field_bytes(const json_t *object, const char *key, char *text, size_t size);
/* "nodes": ["n1","n2"] as "n[1-2]"; where that is too long, as "n[1,3,...] (80 nodes)". */
void wlb_field_nodes(const json_t *object, char *text, size_t size);
/* "layout" as "tp=1,cp=1,pp=1,dp=8". */
void wlb_field_layout(const json_t *object, char *text, size_t size);

#endif
