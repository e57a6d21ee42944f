"""The record: every answer in a hash-chained file, on disk before the answer is sent.

    from genrecourse.advice.record import Record, RecordError
    from genrecourse.advice.record.answers import answer_about, made_by, plans_answer

    record = Record("record", made_by(service, "model"))  # UserError: in use, or damaged
    receipt = record.append(plans_answer(request_id, X, request, plans))  # returns once synced
    record.erase(request_id)  # one person's values, while the service runs
    record.close()  # Record is also a context manager

`append` may be called from many threads; those that wait at the same time share one sync. If it
raises `RecordError` (the disk is full, a write failed), the answer is not recorded and must not
be sent: the service answers 503. `RecordError` is no `UserError`.

    answers.py      Answer: what is recorded about one request, and how it is made from plans
    lines.py        one line of a file: canonical JSON with its own checksum
    commitments.py  personal values as salted commitments, and their opening
    merkle.py       the RFC 6962 tree: roots, proofs of inclusion and of consistency
    check.py        reads a record from the beginning and finds the first damage
    writer.py       Record: appends, syncs, erases
    erasing.py      who a request was about, and the second file without their values
    proofs.py       roots of days and proofs, as they are given to an auditor
    replay.py       computes a recorded answer again
"""

from genrecourse.advice.record.answers import Answer
from genrecourse.advice.record.writer import Receipt, Record, RecordError

__all__ = ["Answer", "Receipt", "Record", "RecordError"]
