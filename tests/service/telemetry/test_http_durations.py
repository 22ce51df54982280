from service.telemetry.http_durations import HttpDurations


def test_durations_are_kept_by_method_route_and_status() -> None:
    requests = HttpDurations()
    requests.observe("POST", "/infer", 200, 0.2)
    requests.observe("POST", "/infer", 200, 0.3)
    requests.observe("POST", "/infer", 503, 0.1)
    counted = {endpoint: (histogram.count, histogram.total) for endpoint, histogram in requests.series()}
    assert counted == {("POST", "/infer", "200"): (2, 0.5), ("POST", "/infer", "503"): (1, 0.1)}


def test_what_clients_type_makes_no_series() -> None:
    requests = HttpDurations()
    for method in ("BREW", "get", "SPILL"):
        requests.observe(method, None, 404, 0.1)
    assert [endpoint for endpoint, _ in requests.series()] == [("_OTHER", "", "404")]
