"""The web service: a page for people and an API for systems, around one `Service`.

    settings.py     every limit, in one place
    run.py          the process: listens, refuses an unsafe start, stops gracefully
    connections.py  what a connection may do before its request is complete
    application.py  create_app: the routes, their order and what stands before them
    gate.py         stands before every route: host, key, rate, size and form of a request, headers
    keys.py         API keys, hashed
    errors.py       the one JSON shape of every error
    desk.py         Desk: one queue and one worker that answers requests that arrive together
    people.py       people of a request as a table, and plans as JSON
    messages.py     what requests and answers of the API look like
    api.py          /api/v1
    platforms.py    KServe, Open Inference Protocol, health
    metrics.py      /metrics
    docs_page.py    /docs: the description of the API as a page
    page.py         the page: its addresses, and what they answer
    form.py         the form, made from the schema, and what somebody filled in
    wishes.py       what somebody asks of plans: locks, ranges, limits, order
    cards.py        plans as cards, with places on small bars
    why.py          the card with reasons, apart from plans
    example.py      somebody who does not exist, to try the page with
    templates/      HTML of the page; everything put into it is escaped
    static/         style and script of the page; nothing from outside

Only this package imports fastapi, starlette, uvicorn, jinja2 and prometheus_client.
"""
