/* What a request may take of wlbd once its credential was accepted: its connection and the buffer of its body. */
#ifndef COORDINATOR_WLBD_HTTP_ADMIT_H
#define COORDINATOR_WLBD_HTTP_ADMIT_H

struct wlbd_call;

/* call->uid is known. Lets the library read the body; or answers 404, 405, 413, or 503 where a budget is used up. */
void wlbd_admit(struct wlbd_call *call);

#endif
