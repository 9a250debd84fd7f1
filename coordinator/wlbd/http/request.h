/*
 * A request as the HTTP library brings it: head, body piece by piece, end. The head alone is read until its credential
 * was accepted; then the body, up to what its route allows; then it goes to the handler of its route.
 */
#ifndef COORDINATOR_WLBD_HTTP_REQUEST_H
#define COORDINATOR_WLBD_HTTP_REQUEST_H

#include <microhttpd.h>
#include <sys/queue.h>

struct wlbd;
struct wlbd_call;

TAILQ_HEAD(wlbd_exchanges, wlbd_exchange);

/* Callbacks of the library; their first argument is the struct wlbd. */
void *wlbd_request_begin(void *wlbd, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result wlbd_request_on_data(void *wlbd, struct MHD_Connection *mhd, const char *path, const char *method,
                                     const char *version, const char *data, size_t *size, void **context);
void wlbd_request_end(void *wlbd, struct MHD_Connection *mhd, void **context, enum MHD_RequestTerminationCode why);

/* call->answer is there: it is sent. */
void wlbd_request_answered(struct wlbd_call *call);

/* So that the library can be stopped: nothing is waited for any more. */
void wlbd_request_abandon_all(struct wlbd_exchanges *exchanges);

#endif
