/*
 * A client must complete a request every so often, or its connection is closed: one that sends a byte at a time would
 * otherwise hold its connection for ever (evhttp's own timeout begins anew with each byte).
 */
#ifndef WLBD_GUARD_H
#define WLBD_GUARD_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

struct wlbd_guards;

struct wlbd_guards *wlbd_guards_new(struct event_base *base, int most_ms);
void wlbd_guards_free(struct wlbd_guards *guards); /* after evhttp_free */

/* For evhttp_set_bevcb, with the guards as its argument: a connection that is watched. */
struct bufferevent *wlbd_guards_connection(struct event_base *base, void *guards);

/* A request was read whole: until its reply the connection is ours to hold. */
void wlbd_guards_request(struct wlbd_guards *guards, struct bufferevent *connection);
void wlbd_guards_reply(struct wlbd_guards *guards, struct bufferevent *connection);

#endif
