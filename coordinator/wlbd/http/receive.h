/*
 * What the HTTP library calls for each request: at its first line, for the head, for each piece of the body, and at its
 * end. Only the head is read until its credential was accepted; then the body, up to what its route allows; then the
 * handler of its route is called. The first argument of each callback is the struct wlbd.
 */
#ifndef COORDINATOR_WLBD_HTTP_RECEIVE_H
#define COORDINATOR_WLBD_HTTP_RECEIVE_H

#include <microhttpd.h>

void *wlbd_receive_begin(void *wlbd, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result wlbd_receive_on_data(void *wlbd, struct MHD_Connection *mhd, const char *path, const char *method,
                                     const char *version, const char *data, size_t *size, void **context);
void wlbd_receive_end(void *wlbd, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why);

#endif
