// A simulator in C++17 that archgym's agents search: the wait in a queue (M/M/c/K, exactly).
//
//   g++ -std=c++17 -O2 -o simulator simulator.cpp
//   archgym serve queue.yaml --simulator client:queue-1.0 --agent ga --budget 60 --record designs -- ./simulator
//
// It asks for designs and tells their metrics, one JSON object a line, until the search is over.

#include <iostream>
#include <sstream>
#include <string>

std::string call(const std::string& request) {
    std::cout << request << std::endl;
    std::string answer;
    if (!std::getline(std::cin, answer)) std::exit(1);
    return answer;
}

std::string after(const std::string& answer, const std::string& key) {
    const auto at = answer.find("\"" + key + "\":");
    return at == std::string::npos ? "" : answer.substr(at + key.size() + 3);
}

// Mean wait for one of `servers`, in ns, and the share of requests that find all `places` taken.
void simulate(int servers, int places, double service_ns, double& wait_ns, double& lost) {
    const double arrivals_per_ns = 0.05;
    double weight = 1, sum = 0, waiting = 0;
    for (int n = 0; n <= places; ++n) {
        if (n > 0) weight *= arrivals_per_ns * service_ns / std::min(n, servers);
        sum += weight;
        if (n > servers) waiting += (n - servers) * weight;
    }
    lost = weight / sum;
    wait_ns = waiting / sum / (arrivals_per_ns * (1 - lost));
}

int main() {
    while (true) {
        const std::string answer = call(R"({"op":"ask"})");
        if (answer.find("\"ok\":true") == std::string::npos) return std::cerr << answer << '\n', 1;
        if (answer.find("\"over\":true") != std::string::npos) break;
        const int servers = std::stoi(after(answer, "servers"));
        const int places = std::stoi(after(answer, "places"));
        const double service_ns = std::stod(after(answer, "service_ns"));
        double wait_ns, lost;
        simulate(servers, places, service_ns, wait_ns, lost);
        std::ostringstream result;
        result.precision(17);
        result << R"({"op":"tell","ticket":)" << std::stol(after(answer, "ticket"));
        result << R"(,"metrics":{"wait_ns":)" << wait_ns << R"(,"lost_share":)" << lost;
        result << R"(,"area_um2":)" << 900.0 * servers * 20 / service_ns + 50.0 * places << "}}";
        call(result.str());
    }
    const std::string best_metrics = after(call(R"({"op":"end"})"), "metrics");
    std::cerr << "best: " << best_metrics.substr(0, best_metrics.find('}') + 1) << '\n';
}
