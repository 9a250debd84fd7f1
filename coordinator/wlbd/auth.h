/* Who asks: the MUNGE credential of a request, checked on a thread since libmunge blocks. */
#ifndef WLBD_AUTH_H
#define WLBD_AUTH_H

struct wlbd_call;

/* Sets call->uid and goes on with `then`, or answers 401, or 503 where munged is away. */
void wlbd_auth_check(struct wlbd_call *call, void (*then)(struct wlbd_call *call));

#endif
